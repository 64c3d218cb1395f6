//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package pool

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct moves bytes to and from a socket with system calls that the scheduler is not told of. A write over loopback
// runs the peer's half of TCP as well and takes longer than the 20 us after which the scheduler gives a CPU whose goroutine
// is in a system call to another thread; then all the callers that are about to run go to a CPU where nothing of
// theirs is in the cache, which costs a third of a command (docs/PERFORMANCE.md). MSG_DONTWAIT bounds the time by
// what copying takes, whatever mode the socket is in: to wait is left to the network poller, as in package net, with
// its deadlines and its Close.
type direct struct {
	conn net.Conn
	sock syscall.RawConn
	in   transfer
	out  transfer
	once func(step func(uintptr) bool) error // a wait that ends after one step
	low  atomic.Int32                        // a Read waits for that many bytes
	look look                                // of a Read
	peep struct {
		sync.Mutex
		look
		step func(fd uintptr)
		seen bool
	}
}

// look is the argument of ppoll(2).
type look struct {
	fd     unix.PollFd
	atOnce unix.Timespec
}

// transfer is one direction. A Read that cannot have it at once takes the way of package net. A Write waits for it: a
// tried write holds nothing that package net knows of, so the two would tear each other. Whatever ends a Write that waits
// for the peer, Close or a deadline, ends those behind it too.
type transfer struct {
	sync.Mutex
	step func(fd uintptr) (done bool)
	b    []byte
	more [][]byte // behind b, for send
	vec  vector
	n    int
	err  error
	wait bool // the first step takes only what is worth a wake
}

// directFor is for connections whose stream is the socket itself; nil for any other.
func directFor(stream, raw net.Conn) *direct {
	if stream != raw {
		return nil
	}
	switch raw.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return nil
	}
	sock, err := raw.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil // closed: package net says so better
	}
	d := &direct{conn: raw, sock: sock}
	sendOnce := func(fd uintptr) { d.send(fd) }
	d.low.Store(1)
	d.in.step, d.out.step = d.receive, d.send
	d.once = func(func(uintptr) bool) error { return sock.Control(sendOnce) }
	d.peep.step = func(fd uintptr) { d.peep.seen = d.peep.at(fd) }
	return d
}

// write is net.Conn's Write: all of b, unless there is an error.
func (d *direct) write(b []byte) (int, error) {
	if len(b) == 0 {
		return d.conn.Write(b)
	}
	d.out.Lock()
	defer d.out.Unlock()
	return d.out.run(b, d.sock.Write)
}

// tryWrite is write that does not wait, neither for the peer nor for another write. It does not pass the gate at which package
// net looks at deadlines and lets writers wait for each other.
func (d *direct) tryWrite(b []byte) (int, error) { return d.tryWriteParts(b, nil) }

// tryWriteParts is tryWrite of b and what follows it.
func (d *direct) tryWriteParts(b []byte, more [][]byte) (int, error) {
	for len(b) == 0 && len(more) > 0 {
		b, more = more[0], more[1:]
	}
	if len(b) == 0 || !d.out.TryLock() {
		return 0, nil // somebody writes
	}
	defer d.out.Unlock()
	d.out.more = more
	return d.out.run(b, d.once)
}

// read is net.Conn's Read.
func (d *direct) read(b []byte) (int, error) {
	if len(b) == 0 || !d.in.TryLock() {
		return d.conn.Read(b)
	}
	defer d.in.Unlock()
	d.in.wait = d.low.Load() > 1
	return d.in.run(b, d.sock.Read)
}

// run lets the poller call step until it is done. Errors of the socket are made to look as package net's do.
func (t *transfer) run(b []byte, wait func(func(uintptr) bool) error) (int, error) {
	t.b, t.n, t.err = b, 0, nil
	err := wait(t.step)
	t.b, t.more = nil, nil
	if err == nil {
		err = t.err
	}
	return t.n, err
}

func (d *direct) send(fd uintptr) bool {
	t := &d.out
	for len(t.b) > 0 {
		var n int
		var e syscall.Errno
		if len(t.more) > 0 {
			n, e = sendParts(fd, &t.vec, t.b, t.more)
		} else {
			n, e = sendNow(fd, t.b[:min(len(t.b), sendMax)])
		}
		switch e {
		case 0:
			t.sent(n)
		case syscall.EAGAIN:
			return false
		default:
			t.err = d.failed("write", "sendto", e)
			return true
		}
	}
	return true
}

// sent moves past n bytes.
func (t *transfer) sent(n int) {
	t.n += n
	for n >= len(t.b) && len(t.more) > 0 {
		n -= len(t.b)
		t.b, t.more = t.more[0], t.more[1:]
	}
	t.b = t.b[n:]
}

func (d *direct) receive(fd uintptr) bool {
	t := &d.in
	if t.wait {
		t.wait = false
		if !d.look.at(fd) {
			return false
		}
	}
	n, e := receiveNow(fd, t.b[:min(len(t.b), receiveMax)])
	switch {
	case e == syscall.EAGAIN:
		return false
	case e != 0:
		t.err = d.failed("read", "recvfrom", e)
	case n == 0:
		t.err = io.EOF
	}
	t.n = n
	return true
}

// gather sets SO_RCVLOWAT (socket(7)): the poller wakes a Read for n bytes or more, for the end of the stream and for an
// error. What lies in the socket when n is lowered wakes it too.
func (d *direct) gather(n int) bool {
	if n = max(n, 1); int32(n) == d.low.Swap(int32(n)) {
		return true
	}
	var err error
	if failed := d.sock.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, n)
	}); failed != nil || err != nil {
		d.low.Store(1)
		return false
	}
	return true
}

// at says whether the poller would wake a Read now. What woke it before it began to wait is not told again, so that one
// has to look.
func (l *look) at(fd uintptr) bool {
	for {
		l.fd = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		n, _, e := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&l.fd)), 1, uintptr(unsafe.Pointer(&l.atOnce)), 0, 0, 0)
		if e != syscall.EINTR {
			return n > 0 || e != 0
		}
	}
}

// readable says whether a Read would return at once.
func (d *direct) readable() bool {
	p := &d.peep
	p.Lock()
	defer p.Unlock()
	return d.sock.Control(p.step) != nil || p.seen
}

// What one call copies at most, and with it how long its CPU is out of the scheduler's reach. A value of 64 KiB goes out in one call.
const (
	sendMax    = 256 << 10
	receiveMax = 64 << 10
)

// failed is the error that package net would give.
func (d *direct) failed(op, call string, e syscall.Errno) error {
	addr := d.conn.RemoteAddr()
	network := ""
	if addr != nil {
		network = addr.Network()
	}
	return &net.OpError{Op: op, Net: network, Source: d.conn.LocalAddr(), Addr: addr, Err: os.NewSyscallError(call, e)}
}

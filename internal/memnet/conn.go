package memnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Conn is one end of a Pipe. All methods may be called from many goroutines; concurrent Writes take turns, each
// whole, as they do on a socket. Errors are *net.OpError (io.EOF is bare), and match net.ErrClosed,
// os.ErrDeadlineExceeded, syscall.EPIPE and syscall.ECONNRESET under errors.Is.
type Conn struct {
	p             *pair
	side          int
	local, remote Addr
}

var _ net.Conn = (*Conn)(nil)

// Out is the direction this end writes into.
func (c *Conn) Out() *Lane { return &Lane{p: c.p, i: c.side} }

// In is the direction this end reads from.
func (c *Conn) In() *Lane { return &Lane{p: c.p, i: 1 - c.side} }

// Read takes bytes that have arrived and blocks while there are none. After the peer's Close, a CloseWrite or a
// cut it returns the end once everything that arrived was taken.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.read(b)
	if err != nil && err != io.EOF {
		err = c.opError("read", err)
	}
	return n, err
}

func (c *Conn) read(b []byte) (int, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	e, l := &c.p.mu.ends[c.side], &c.p.mu.lanes[1-c.side]
	for {
		switch {
		case e.closed:
			return 0, net.ErrClosed
		case e.read.expired:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		}
		if n := l.takeLocked(b); n > 0 {
			return n, nil
		}
		if err := l.atEndLocked(); err != nil {
			return 0, err
		}
		l.wanted += len(b)
		if l.size < 0 {
			l.writeable.Broadcast()
		}
		l.readable.Wait()
		l.wanted -= len(b)
	}
}

// Write blocks until all of b was accepted into the buffer, or fails with the exact number of bytes that were.
// A peer that has closed is noticed when its end mark has arrived, so under delay or stall bytes are accepted
// that nobody will read, as on a socket.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.write(b, true)
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// TryWrite is Write that does not wait, neither for room nor for another Write: it returns how many bytes were accepted at
// once, and no error for the rest. The write deadline does not concern it.
func (c *Conn) TryWrite(b []byte) (int, error) {
	n, err := c.write(b, false)
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

func (c *Conn) write(b []byte, wait bool) (n int, err error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	l := &c.p.mu.lanes[c.side]
	why := c.writeErrLocked
	if !wait {
		why = c.refusedLocked
	}
	for l.writing {
		if err := why(); err != nil {
			return 0, err
		}
		if !wait {
			return 0, nil
		}
		l.writeable.Wait()
	}
	l.writing = true
	defer func() {
		l.writing = false
		l.writeable.Broadcast()
	}()
	if err := why(); err != nil || len(b) == 0 {
		return 0, err
	}
	l.writes++
	for n < len(b) {
		if err := why(); err != nil {
			return n, err
		}
		want := b[n:]
		if s := l.faults.short; s.err != nil {
			if n >= s.n {
				return n, s.err
			}
			want = want[:min(len(want), s.n-n)]
		}
		m := l.acceptLocked(want)
		if n += m; m == 0 {
			if !wait {
				return n, nil
			}
			l.writeable.Wait()
		}
	}
	return n, nil
}

// writeErrLocked is why this end may not write now, or nil.
func (c *Conn) writeErrLocked() error {
	if e := &c.p.mu.ends[c.side]; !e.closed && e.write.expired {
		return os.ErrDeadlineExceeded
	}
	return c.refusedLocked()
}

// refusedLocked is why this end may not write any more, or nil.
func (c *Conn) refusedLocked() error {
	e, l, back := &c.p.mu.ends[c.side], &c.p.mu.lanes[c.side], &c.p.mu.lanes[1-c.side]
	switch {
	case e.closed:
		return net.ErrClosed
	case l.writeErr != nil:
		return l.writeErr
	case l.readerGone && back.endSeenLocked():
		return syscall.EPIPE
	}
	return nil
}

// Close ends this side: its own blocked calls return net.ErrClosed, the peer reads what was accepted and then
// io.EOF, and the peer's writes fail with EPIPE. A second Close returns net.ErrClosed.
func (c *Conn) Close() error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if !c.closeLocked() {
		return c.opError("close", net.ErrClosed)
	}
	c.p.mu.lanes[c.side].endLocked(io.EOF)
	return nil
}

func (c *Conn) closeLocked() bool {
	e := &c.p.mu.ends[c.side]
	if e.closed {
		return false
	}
	e.closed = true
	e.read.setLocked(c.p, time.Time{}, nil)
	e.write.setLocked(c.p, time.Time{}, nil)
	c.p.mu.lanes[1-c.side].readerGone = true
	c.p.mu.lanes[0].wakeLocked()
	c.p.mu.lanes[1].wakeLocked()
	return true
}

// CloseWrite sends the end mark and keeps reading. Later writes fail with EPIPE.
func (c *Conn) CloseWrite() error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	l := &c.p.mu.lanes[c.side]
	if err := c.refusedLocked(); err != nil {
		return c.opError("close", err)
	}
	l.writeErr = syscall.EPIPE
	l.endLocked(io.EOF)
	l.wakeLocked()
	return nil
}

// Reset closes this end abruptly: what is in either direction is lost, and the peer's calls fail with
// ECONNRESET, even under a stall. It is how SetLinger(0) and Close behave on a socket.
func (c *Conn) Reset() error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.dieLocked(Cut{Reset: true, Drop: true})
	if !c.closeLocked() {
		return c.opError("close", net.ErrClosed)
	}
	return nil
}

// Freeze stops delivery in both directions; Thaw resumes it. See Lane.Freeze.
func (c *Conn) Freeze() { c.In().Freeze(); c.Out().Freeze() }

// Thaw undoes Freeze and StallAt in both directions.
func (c *Conn) Thaw() { c.In().Thaw(); c.Out().Thaw() }

// Closed says whether this end was closed by its holder.
func (c *Conn) Closed() bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.p.mu.ends[c.side].closed
}

// ExactWrite says whether the count of a failed Write is exactly what was accepted: true unless SetExactWrite
// changed what is claimed. (The count is exact in any case.)
func (c *Conn) ExactWrite() bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return !c.p.mu.ends[c.side].inexact
}

// SetExactWrite changes the answer of ExactWrite, to test the cautious path of a user.
func (c *Conn) SetExactWrite(exact bool) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.mu.ends[c.side].inexact = !exact
}

func (c *Conn) LocalAddr() net.Addr  { return c.local }
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

func (c *Conn) SetDeadline(t time.Time) error      { return c.setDeadlines(t, true, true) }
func (c *Conn) SetReadDeadline(t time.Time) error  { return c.setDeadlines(t, true, false) }
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, false, true) }

func (c *Conn) setDeadlines(t time.Time, read, write bool) error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	e := &c.p.mu.ends[c.side]
	if e.closed {
		return c.opError("set", net.ErrClosed)
	}
	if read {
		e.read.setLocked(c.p, t, c.p.mu.lanes[1-c.side].readable.Broadcast)
	}
	if write {
		e.write.setLocked(c.p, t, c.p.mu.lanes[c.side].writeable.Broadcast)
	}
	return nil
}

func (c *Conn) opError(op string, err error) error {
	if no, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(op, no)
	}
	return &net.OpError{Op: op, Net: "mem", Source: c.local, Addr: c.remote, Err: err}
}

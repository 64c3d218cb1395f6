package memnet

import (
	"net"
	"os"
	"sync"
	"syscall"
)

// Listener hands out the server ends of dialed connections. Close it to give its address back.
type Listener struct {
	n    *Network
	addr Addr
	mu   struct {
		sync.Mutex
		closed  bool
		waiting []*Conn
	}
	changed *sync.Cond
}

var _ net.Listener = (*Listener)(nil)

// Listen opens addr, any non-empty text; an address in use fails with EADDRINUSE.
func (n *Network) Listen(addr string) (*Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "mem", Addr: Addr(addr), Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	l := &Listener{n: n, addr: Addr(addr)}
	l.changed = sync.NewCond(&l.mu.Mutex)
	if n.mu.listeners == nil {
		n.mu.listeners = map[string]*Listener{}
	}
	n.mu.listeners[addr] = l
	return l, nil
}

// offer queues c for Accept; false when the listener is closed or its backlog full.
func (l *Listener) offer(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed || len(l.mu.waiting) >= backlog {
		return false
	}
	l.mu.waiting = append(l.mu.waiting, c)
	l.changed.Signal()
	return true
}

// Accept blocks until a connection is dialed, or fails with net.ErrClosed. The result is a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.mu.waiting) == 0 {
		if l.mu.closed {
			return nil, &net.OpError{Op: "accept", Net: "mem", Addr: l.addr, Err: net.ErrClosed}
		}
		l.changed.Wait()
	}
	c := l.mu.waiting[0]
	l.mu.waiting = l.mu.waiting[1:]
	return c, nil
}

// Close frees the address and resets connections that nobody accepted. Accepted ones live on.
func (l *Listener) Close() error {
	l.n.mu.Lock()
	if l.n.mu.listeners[string(l.addr)] == l {
		delete(l.n.mu.listeners, string(l.addr))
	}
	l.n.mu.Unlock()

	l.mu.Lock()
	orphans, was := l.mu.waiting, l.mu.closed
	l.mu.waiting, l.mu.closed = nil, true
	l.changed.Broadcast()
	l.mu.Unlock()
	for _, c := range orphans {
		_ = c.Reset()
	}
	if was {
		return &net.OpError{Op: "close", Net: "mem", Addr: l.addr, Err: net.ErrClosed}
	}
	return nil
}

func (l *Listener) Addr() net.Addr { return l.addr }

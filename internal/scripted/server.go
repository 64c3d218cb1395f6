// Package scripted is a fake server that does what a test tells it to, and the witness of what it received: it
// logs every request and counts how often each token was executed. With it come a command, a protocol and a
// leaser of the same small dialect, so that the engine can be tested without any binding. It knows RESP framing
// and nothing about the engine under test.
//
// A request is an array of bulk strings VERB TOKEN ARGS...; executing it counts the token and answers the token
// as a bulk string. The server runs over any net.Conn: over internal/memnet inside a testing/synctest bubble, or
// over TCP. For tests only.
package scripted

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// Options of a Server; the zero value executes and answers everything.
type Options struct {
	// Script decides what happens to each request that is not a handshake verb. It runs on the goroutine of the
	// connection with no lock held; requests behind it on that connection wait. Nil, or the zero Action, executes
	// and answers.
	Script func(c *ServerConn, req Request) Action

	// Handshake gives the raw reply of each verb that is part of the set-up and is not counted; nil means
	// DefaultHandshake. CLIENT ID and CLIENT KILL ID are served in any case: a connection's id is its index + 1.
	Handshake map[string]string

	// OnHandshake is Script for handshake verbs.
	OnHandshake func(c *ServerConn, req Request) Action

	// ReadAhead bounds the requests that are read and not handled yet, per connection, within one read chunk;
	// zero = no bound, negative = none: the server does not read while it has something to handle or to write.
	ReadAhead int
}

// DefaultHandshake is a fresh copy of the replies used when Options.Handshake is nil.
func DefaultHandshake() map[string]string {
	const ok = "+OK\r\n"
	return map[string]string{"PING": "+PONG\r\n", "HELLO": ok, "AUTH": ok, "SELECT": ok, "CLIENT": ok, "ASKING": ok}
}

// Server serves connections by its script. All methods may be called from any goroutine, also from scripts,
// except Close.
type Server struct {
	o  Options
	wg sync.WaitGroup
	mu struct {
		sync.Mutex
		closed    bool
		listeners []net.Listener
		conns     []*ServerConn // all that were accepted, by index

		freezeReads, freezeExec, freezeReplies bool
		refuseConns                            bool
		refuseAll                              string

		executed  map[string]int
		seen      map[string]int
		order     []string
		arrivals  uint64
		maxUnansw int
		changes   uint64
	}
	changed *sync.Cond // broadcast with every count of changes
}

// New makes a server without connections. Inside a bubble, call it there. Close it.
func New(o Options) *Server {
	if o.Handshake == nil {
		o.Handshake = DefaultHandshake()
	}
	s := &Server{o: o}
	s.changed = sync.NewCond(&s.mu.Mutex)
	s.mu.executed, s.mu.seen = map[string]int{}, map[string]int{}
	return s
}

// ListenTCP makes a server on a free port of 127.0.0.1 and returns its address.
func ListenTCP(o Options) (*Server, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	s := New(o)
	s.Serve(l)
	return s, l.Addr().String(), nil
}

// Serve accepts from l on a goroutine of its own until the server or l is closed. Close closes l.
func (s *Server) Serve(l net.Listener) {
	s.mu.Lock()
	closed := s.mu.closed
	if !closed {
		s.mu.listeners = append(s.mu.listeners, l)
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if closed {
		_ = l.Close()
		return
	}
	go func() {
		defer s.wg.Done()
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.ServeConn(nc)
		}
	}()
}

// ServeConn serves one connection on goroutines of its own and returns at once. The server owns nc.
func (s *Server) ServeConn(nc net.Conn) {
	s.mu.Lock()
	if s.mu.closed || s.mu.refuseConns {
		s.mu.Unlock()
		_ = nc.Close()
		return
	}
	c := newConn(s, nc, len(s.mu.conns))
	s.mu.conns = append(s.mu.conns, c)
	s.wg.Add(2)
	s.changeLocked()
	s.mu.Unlock()
	go func() { defer s.wg.Done(); c.read() }()
	go func() { defer s.wg.Done(); c.serve() }()
}

// Close closes listeners and connections and waits for all goroutines; a script that blocks must watch
// ServerConn.Done. A second Close only waits.
func (s *Server) Close() error {
	s.mu.Lock()
	s.mu.closed = true
	listeners := s.mu.listeners
	s.mu.listeners = nil
	s.mu.Unlock()
	var errs []error
	for _, l := range listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	s.CloseConns()
	s.wg.Wait()
	return errors.Join(errs...)
}

// Until blocks until f holds, asking it again after every event (a request, an execution, a connection opened or
// ended), with no lock held. It returns the error of ctx when that ends first.
func (s *Server) Until(ctx context.Context, f func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changeLocked()
	})
	defer stop()
	for {
		s.mu.Lock()
		seen := s.mu.changes
		s.mu.Unlock()
		if f() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		for s.mu.changes == seen {
			s.changed.Wait()
		}
		s.mu.Unlock()
	}
}

func (s *Server) changeLocked() {
	s.mu.changes++
	s.changed.Broadcast()
}

// FreezeReads stops (or resumes) reading: what clients send stays in their and the network's buffers. A read
// that is under way may still take one chunk, which is looked at after the thaw.
func (s *Server) FreezeReads(on bool) { s.set(func() { s.mu.freezeReads = on }) }

// FreezeExec stops (or resumes) the handling of requests; they are read and logged.
func (s *Server) FreezeExec(on bool) { s.set(func() { s.mu.freezeExec = on }) }

// FreezeReplies holds back (or lets out) the reply bytes; requests are still executed.
func (s *Server) FreezeReplies(on bool) { s.set(func() { s.mu.freezeReplies = on }) }

// RefuseConns closes new connections as soon as they are accepted, until told otherwise.
func (s *Server) RefuseConns(on bool) { s.set(func() { s.mu.refuseConns = on }) }

// RefuseAll answers every request, handshake included, with the error line (such as "LOADING soon"), unexecuted;
// the script is not asked. The empty line ends it.
func (s *Server) RefuseAll(line string) { s.set(func() { s.mu.refuseAll = line }) }

func (s *Server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	for _, c := range s.mu.conns {
		c.changed.Broadcast()
	}
}

// CloseConns closes all connections; nothing that they have not executed will be.
func (s *Server) CloseConns() { s.each((*ServerConn).Close) }

// ResetConns is CloseConns with a reset instead of a close.
func (s *Server) ResetConns() { s.each((*ServerConn).Reset) }

func (s *Server) each(f func(*ServerConn)) {
	s.mu.Lock()
	conns := slices.Clone(s.mu.conns)
	s.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}

// clock is the time a request is logged with; fake inside a bubble.
func clock() time.Time { return time.Now() }

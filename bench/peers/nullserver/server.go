// Package nullserver is a RESP server that costs as little as a server can: it finds the end of each request,
// counts it, and answers +OK, so that what is measured beside it is the client. It knows the few commands by which
// clients set a connection up, a command that asks what was counted, and one that makes it cut a connection with
// requests unanswered. It stores nothing, and knows nothing of who measures.
package nullserver

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// Server counts the requests of all its connections.
type Server struct {
	listener net.Listener
	reply    string // to what is counted
	wg       sync.WaitGroup
	frames   atomic.Int64 // requests that were answered +OK, or swallowed by a hold
	reads    atomic.Int64 // reads that brought any
	ids      atomic.Int64
	pace     int                    // bytes a connection is read per second; 0 = as fast as they come
	value    atomic.Pointer[[]byte] // the reply to a GET; nil = reply
	hold     atomic.Int64           // requests still to be swallowed before the cut; 0 = not holding
	mu       struct {
		sync.Mutex
		closed bool
		conns  map[net.Conn]struct{}
	}
}

// Listen serves on addr, such as "127.0.0.1:0", until Close.
func Listen(addr string) (*Server, error) { return listen(addr, okReply, 0) }

// ListenSlow is Listen for a server that reads no more than pace bytes a second from each connection.
func ListenSlow(addr string, pace int) (*Server, error) { return listen(addr, okReply, pace) }

// ListenWrong is Listen for a server that answers what is counted with +NO, to see who notices.
func ListenWrong(addr string) (*Server, error) { return listen(addr, "+NO\r\n", 0) }

func listen(addr, reply string, pace int) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, reply: reply, pace: pace}
	s.mu.conns = map[net.Conn]struct{}{}
	s.wg.Go(s.accept)
	return s, nil
}

// Addr is host and port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends all connections and waits for their goroutines.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	s.mu.closed = true
	for c := range s.mu.conns {
		err = errors.Join(err, ignoreClosed(endConn(c)))
	}
	s.mu.Unlock()
	s.wg.Wait()
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		closed := s.mu.closed
		if !closed {
			s.mu.conns[c] = struct{}{}
		}
		s.mu.Unlock()
		if closed {
			_ = c.Close()
			return
		}
		s.wg.Go(func() {
			s.serve(c)
			s.mu.Lock()
			delete(s.mu.conns, c)
			_ = c.Close()
			s.mu.Unlock()
		})
	}
}

package scripted

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// flushAt is how many reply bytes gather before they are written although more requests wait.
const flushAt = 32 << 10

// ServerConn is the server's side of one connection: a goroutine that reads and logs, and one that handles and
// writes. When the client closes, what was read is still executed, as servers do; when the test closes the
// connection, it is not.
type ServerConn struct {
	s     *Server
	nc    net.Conn
	index int
	done  chan struct{} // closed when the connection ended

	// Guarded by s.mu.
	st struct {
		queue    []work
		log      []Request
		readDone bool
		ended    bool
		busy     bool // the handler is not parked
		stalled  bool
		unansw   int
	}
	changed *sync.Cond // on s.mu: queue, knobs, state

	// Of the handler.
	out      []byte
	answered int  // requests whose answers are in out
	muted    bool // answers go nowhere
}

// work is a request, or raw bytes to write, or the end of the stream.
type work struct {
	req   Request
	raw   []byte
	close bool
}

func newConn(s *Server, nc net.Conn, index int) *ServerConn {
	c := &ServerConn{s: s, nc: nc, index: index, done: make(chan struct{})}
	c.changed = sync.NewCond(&s.mu.Mutex)
	return c
}

// Index is the position among the accepted connections, from 0.
func (c *ServerConn) Index() int { return c.index }

// NetConn is the connection itself, to arm faults on; do not read or write it.
func (c *ServerConn) NetConn() net.Conn { return c.nc }

// Server is the server it belongs to.
func (c *ServerConn) Server() *Server { return c.s }

// Done is closed when the connection has ended, for scripts that block.
func (c *ServerConn) Done() <-chan struct{} { return c.done }

// Push writes raw bytes behind the answers of what has arrived so far; at once when idle.
func (c *ServerConn) Push(raw []byte) {
	if len(raw) > 0 {
		c.enqueue(work{raw: raw})
	}
}

// Close ends the connection at once; nothing more is executed.
func (c *ServerConn) Close() { c.end(false) }

// Reset is Close with a reset, where the transport can.
func (c *ServerConn) Reset() { c.end(true) }

func (c *ServerConn) end(reset bool) {
	c.s.mu.Lock()
	was := c.st.ended
	c.st.ended = true
	c.st.queue = nil
	c.changed.Broadcast()
	c.s.changeLocked()
	c.s.mu.Unlock()
	if was {
		return
	}
	close(c.done)
	if reset {
		switch nc := c.nc.(type) {
		case interface{ Reset() error }:
			_ = nc.Reset()
		case interface{ SetLinger(int) error }:
			_ = nc.SetLinger(0)
		}
	}
	_ = c.nc.Close()
}

func (c *ServerConn) enqueue(w work) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.enqueueLocked(w)
}

func (c *ServerConn) enqueueLocked(w work) {
	if c.st.ended {
		return
	}
	c.st.queue = append(c.st.queue, w)
	c.changed.Broadcast()
}

// read is the reading goroutine.
func (c *ServerConn) read() {
	var p requests
	buf := make([]byte, 64<<10)
	for c.mayRead(true) {
		n, err := c.nc.Read(buf)
		if n > 0 && !c.mayRead(false) {
			return
		}
		p.feed(buf[:n])
		for {
			args, size, ok, perr := p.next()
			if perr != nil {
				c.enqueue(work{raw: []byte("-ERR " + perr.Error() + "\r\n"), close: true})
				return
			}
			if !ok {
				break
			}
			c.arrive(Request{Args: args, Size: size, At: clock()})
		}
		if err != nil {
			break
		}
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.st.readDone = true
	c.changed.Broadcast()
}

// mayRead waits while reading is frozen or, when asked before a read, ahead of its bound; false at the end.
func (c *ServerConn) mayRead(bounded bool) bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for !c.st.ended && (c.s.mu.freezeReads || bounded && c.tooFarLocked()) {
		c.changed.Wait()
	}
	return !c.st.ended
}

func (c *ServerConn) tooFarLocked() bool {
	switch bound := c.s.o.ReadAhead; {
	case bound > 0:
		return len(c.st.queue) >= bound
	case bound < 0:
		return len(c.st.queue) > 0 || c.st.busy
	}
	return false
}

func (c *ServerConn) arrive(r Request) {
	_, r.Handshake = c.s.o.Handshake[r.Verb()]
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.mu.arrivals++
	r.Arrival, r.Seq = c.s.mu.arrivals, len(c.st.log)
	c.st.log = append(c.st.log, r)
	if !r.Handshake {
		c.st.unansw++
		c.s.mu.maxUnansw = max(c.s.mu.maxUnansw, c.st.unansw)
	}
	c.enqueueLocked(work{req: r})
	c.s.changeLocked()
}

// serve is the handling goroutine.
func (c *ServerConn) serve() {
	defer c.Close()
	for {
		w, flush, ok := c.next()
		switch {
		case !ok:
			return
		case flush:
			c.flush()
		case w.raw != nil || w.close:
			c.emit(w.raw)
			if w.close {
				c.flush()
				return
			}
		default:
			c.handle(w.req)
		}
	}
}

// next waits for something to handle or to flush; ok is false at the end.
func (c *ServerConn) next() (w work, flush, ok bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for {
		st, mayFlush := &c.st, (len(c.out) > 0 || c.answered > 0) && !c.s.mu.freezeReplies
		switch {
		case st.ended:
			return work{}, false, false
		case mayFlush && len(c.out) >= flushAt:
			return work{}, true, true
		case len(st.queue) > 0 && !c.s.mu.freezeExec && !st.stalled:
			w, st.queue = st.queue[0], st.queue[1:]
			st.busy = true
			return w, false, true
		case mayFlush:
			st.busy = true
			return work{}, true, true
		case st.readDone && (len(st.queue) == 0 && len(c.out) == 0 || st.stalled):
			return work{}, false, false
		}
		st.busy = false
		c.changed.Broadcast()
		c.changed.Wait()
	}
}

// flush writes the gathered answers, unless they are frozen. A client that is gone loses them; what it has sent
// is executed all the same.
func (c *ServerConn) flush() {
	c.s.mu.Lock()
	if c.s.mu.freezeReplies && !c.st.ended {
		c.s.mu.Unlock()
		return
	}
	// Before the write: a client that has a reply may have sent its next request already.
	c.st.unansw -= c.answered
	c.s.mu.Unlock()
	c.answered = 0
	if len(c.out) > 0 {
		if _, err := c.nc.Write(c.out); err != nil {
			c.muted = true
		}
	}
	c.out = c.out[:0]
}

// pause waits d, or until the connection ends; false then.
func (c *ServerConn) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.done:
		return false
	}
}

// client is the answer to the CLIENT subcommands that a handshake may use; nil for all else.
func (c *ServerConn) client(r Request) []byte {
	if r.Verb() != "CLIENT" {
		return nil
	}
	n := 0
	switch sub := strings.ToUpper(r.Token()); {
	case sub == "ID":
		n = c.index + 1
	case sub == "KILL" && len(r.Args) == 4 && strings.EqualFold(r.Args[2], "ID"):
		id, _ := strconv.Atoi(r.Args[3])
		if victim := c.s.Conn(id - 1); victim != nil && victim != c && victim.kill() {
			n = 1
		}
	default:
		return nil
	}
	return []byte(":" + strconv.Itoa(n) + "\r\n")
}

// kill is Close that says whether the connection was still open.
func (c *ServerConn) kill() bool {
	c.s.mu.Lock()
	was := c.st.ended
	c.s.mu.Unlock()
	c.Close()
	return !was
}

package cuts

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/fdengine/fullduplex/internal/memnet"
)

// dialect is what a witness speaks.
type dialect interface {
	// next cuts one request off the start of buf; n = 0: it is not whole.
	next(buf []byte) (words []string, n int)
	// handle carries a request out and answers it. greeted: it is the one that ends a handshake.
	handle(c *served, words []string) (reply string, greeted bool)
}

// witness is a server that knows what reached it: it keeps every byte of every connection, and carries a request out
// the moment its last byte is there, in order, whether or not somebody still waits for the answer.
type witness struct {
	dialect dialect
	read    int                                    // bytes of one read
	greeted func(c *served) (hold <-chan struct{}) // before the answer that ends a handshake; hold: read nothing until it is closed
	wg      sync.WaitGroup
	mu      struct {
		sync.Mutex
		conns []*served
	}
}

// served is one connection of a witness. Its goroutine owns it until the witness has been waited for.
type served struct {
	w     *witness
	index int
	nc    *memnet.Conn

	got   []byte   // all that was read
	hello int      // bytes of got that were the handshake; -1: it did not end
	ran   []string // what was carried out, in order
	marks []mark   // one per request

	multi  bool // between MULTI and EXEC
	queued []string
	tube   string
	killed atomic.Bool
}

// mark is how many bytes had been received and answered when a request was done.
type mark struct{ got, back int }

func (w *witness) serve(l net.Listener) {
	w.wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			c := &served{w: w, index: len(w.mu.conns), nc: nc.(*memnet.Conn), hello: -1, tube: "default"}
			w.mu.conns = append(w.mu.conns, c)
			w.mu.Unlock()
			w.wg.Go(c.talk)
		}
	})
}

func (c *served) talk() {
	defer c.nc.Close()
	chunk := make([]byte, c.w.read)
	mute, back := false, 0
	for at := 0; ; {
		n, err := c.nc.Read(chunk)
		c.got = append(c.got, chunk[:n]...)
		for !c.killed.Load() {
			words, n := c.w.dialect.next(c.got[at:])
			if n == 0 {
				break
			}
			at += n
			reply, greeted := c.w.dialect.handle(c, words)
			back += len(reply)
			c.marks = append(c.marks, mark{at, back})
			var hold <-chan struct{}
			if greeted = greeted && c.hello < 0; greeted {
				c.hello = at
				hold = c.w.greeted(c)
			}
			if !mute {
				_, err := c.nc.Write([]byte(reply))
				mute = err != nil
			}
			if hold != nil {
				<-hold
			}
		}
		if err != nil {
			return
		}
	}
}

// kill ends a connection by its number, counted from 1: nothing more of it is carried out.
func (w *witness) kill(id int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id < 1 || id > len(w.mu.conns) || w.mu.conns[id-1].killed.Swap(true) {
		return false
	}
	return w.mu.conns[id-1].nc.Close() == nil
}

// wait ends the witness and returns its connections.
func (w *witness) wait(l net.Listener) []*served {
	_ = l.Close()
	w.mu.Lock()
	conns := w.mu.conns
	w.mu.Unlock()
	for _, c := range conns {
		_ = c.nc.Close()
	}
	w.wg.Wait()
	return conns
}

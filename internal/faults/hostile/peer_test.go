package hostile

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/fdengine/fullduplex/internal/memnet"
)

// request is one whole request, and what an honest server answers.
type request struct {
	size   int
	token  string // what is carried out; empty: it belongs to the handshake
	ends   bool   // it is the last of the handshake
	answer string
}

// honest knows how a server is asked and what it answers.
type honest interface {
	next(buf []byte) request // size 0: it is not whole
}

// peer is a server. Its first connection goes bad where evil or welcome say; the others are honest, and so is the
// first until then.
type peer struct {
	honest  honest
	tls     *tls.Config
	welcome func(v *visit) // in place of the first answer of the handshake
	ready   func(v *visit) // before the last answer of the handshake is written
	turn    int            // the command, counted from 1, that evil is shown in place of being answered
	evil    func(v *visit, r request)
	over    chan struct{} // closed when the story is
	wg      sync.WaitGroup
	mu      struct {
		sync.Mutex
		visits []*visit
		ran    map[string]int
	}
}

// visit is one connection of a peer.
type visit struct {
	*peer
	net.Conn              // what is spoken on
	raw      *memnet.Conn // below TLS
	index    int
	hello    []string // the answers of the handshake so far
}

func (p *peer) serve(l net.Listener) {
	p.over = make(chan struct{})
	p.mu.ran = map[string]int{}
	p.wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			v := &visit{peer: p, Conn: nc, raw: nc.(*memnet.Conn)}
			if p.tls != nil {
				v.Conn = tls.Server(nc, p.tls)
			}
			p.mu.Lock()
			v.index = len(p.mu.visits)
			p.mu.visits = append(p.mu.visits, v)
			p.mu.Unlock()
			p.wg.Go(v.talk)
		}
	})
}

func (v *visit) talk() {
	defer v.raw.Close()
	var buf []byte
	chunk := make([]byte, 64<<10)
	for turn := 1; ; {
		n, err := v.Read(chunk)
		buf = append(buf, chunk[:n]...)
		for {
			r := v.honest.next(buf)
			if r.size == 0 {
				break
			}
			buf = buf[r.size:]
			switch {
			case r.token == "" && v.index == 0 && v.welcome != nil:
				v.welcome(v)
				v.drain()
				return
			case r.token == "":
				v.hello = append(v.hello, r.answer)
				if r.ends && v.ready != nil {
					v.ready(v)
				}
			case v.index == 0 && turn == v.turn:
				v.ran(r.token)
				v.evil(v, r)
				v.drain()
				return
			default:
				turn++
				v.ran(r.token)
			}
			if _, err := io.WriteString(v, r.answer); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// ran notes that a command was carried out.
func (v *visit) ran(token string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.ran[token]++
}

// drain reads until the client, or the story, ends.
func (v *visit) drain() { _, _ = io.Copy(io.Discard, v.raw) }

// say writes text; false: the client is gone.
func (v *visit) say(text string) bool {
	_, err := io.WriteString(v, text)
	return err == nil
}

// pause waits; false: the story is over.
func (v *visit) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-v.over:
		return false
	}
}

// wait ends the peer and returns its connections and what was carried out.
func (p *peer) wait(l net.Listener) ([]*visit, map[string]int) {
	close(p.over)
	_ = l.Close()
	p.mu.Lock()
	visits := p.mu.visits
	p.mu.Unlock()
	for _, v := range visits {
		_ = v.raw.Close()
	}
	p.wg.Wait()
	return visits, p.mu.ran
}

// prefixed puts something behind the next thing that is written, in one piece.
type prefixed struct {
	net.Conn
	behind string
}

func (c *prefixed) Write(b []byte) (int, error) {
	if c.behind == "" {
		return c.Conn.Write(b)
	}
	n, err := c.Conn.Write(append(b[:len(b):len(b)], c.behind...))
	c.behind = ""
	return min(n, len(b)), err
}

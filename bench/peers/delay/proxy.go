// Package delay is a proxy that lets every byte take its time: what comes in at one side goes out at the other half a
// round trip later, however much is under way. It copies bytes and knows no protocol.
package delay

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/pause"
)

const (
	pieceSize = 128 << 10
	pieces    = 1024 // of one direction: more than a round trip can carry
)

// Proxy forwards the connections that it accepts.
type Proxy struct {
	listener net.Listener
	target   string
	half     time.Duration
	wg       sync.WaitGroup
	mu       struct {
		sync.Mutex
		closed bool
		conns  map[net.Conn]struct{}
	}
}

// Listen accepts on addr, such as "127.0.0.1:0", and forwards to target until Close. A round trip takes rtt longer
// than it would without; 0 = no longer.
func Listen(addr, target string, rtt time.Duration) (*Proxy, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, half: rtt / 2}
	p.mu.conns = map[net.Conn]struct{}{}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is host and port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close cuts all connections and waits for their goroutines.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.mu.closed = true
	for c := range p.mu.conns {
		_ = c.Close() // it may have been closed by its peer's end
	}
	p.mu.Unlock()
	p.wg.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { _ = p.forward(c) })
	}
}

var errClosed = errors.New("delay: the proxy is closed")

// keep registers a connection for Close.
func (p *Proxy) keep(c net.Conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return errClosed
	}
	p.mu.conns[c] = struct{}{}
	return nil
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.mu.conns, c)
	p.mu.Unlock()
	_ = c.Close()
}

// forward serves one connection until both sides have ended it.
func (p *Proxy) forward(c net.Conn) error {
	defer p.drop(c)
	if err := p.keep(c); err != nil {
		return err
	}
	t, err := net.Dial("tcp", p.target)
	if err != nil {
		return err
	}
	defer p.drop(t)
	if err := p.keep(t); err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.direction(t, c) })
	wg.Go(func() { p.direction(c, t) })
	wg.Wait()
	return nil
}

// piece is what one read brought, to be written at a time that counts from the start of its direction.
type piece struct {
	data []byte
	due  time.Duration
}

// direction copies from one connection to another. The end of one is passed on as the end of the other, as late as
// its bytes.
func (p *Proxy) direction(to, from net.Conn) {
	start := time.Now()
	timer, err := pause.New()
	if err != nil {
		_ = to.Close()
		return
	}
	defer timer.Close()
	queue, free := make(chan piece, pieces), make(chan []byte, pieces)
	var wg sync.WaitGroup
	wg.Go(func() {
		failed := false
		for x := range queue {
			if !failed {
				failed = timer.Until(start, x.due) != nil
			}
			if !failed {
				_, err := to.Write(x.data)
				failed = err != nil
			}
			select {
			case free <- x.data[:cap(x.data)]:
			default:
			}
		}
		if t, is := to.(*net.TCPConn); is {
			_ = t.CloseWrite() // it may be gone
		}
	})
	for {
		var buf []byte
		select {
		case buf = <-free:
		default:
			buf = make([]byte, pieceSize)
		}
		n, err := from.Read(buf)
		if n > 0 {
			queue <- piece{buf[:n], time.Since(start) + p.half}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	wg.Wait()
}

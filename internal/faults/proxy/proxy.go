// Package proxy is a TCP proxy on 127.0.0.1 that does harm on purpose: it cuts, resets, freezes, half closes, drips
// and delays the connections that go through it, to the byte. It stands between a client and a real server. It knows
// bytes and sockets and nothing of what they mean. For tests only.
//
// A Proxy listens on one address and dials one backend for each connection it accepts; the pair is a Link. Faults are
// methods of a Link. Proxy.Each does one to all links, Proxy.OnLink to each new one before its first byte.
package proxy

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// dialTimeout bounds the dial of the backend.
const dialTimeout = 5 * time.Second

// Proxy is one listening address and the links accepted on it. Its methods may be called from any goroutine.
type Proxy struct {
	addr   string
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // accept loops and links

	mu struct {
		sync.Mutex
		listener net.Listener // nil while connections are refused
		backend  string
		onLink   func(*Link)
		links    []*Link // those that live, oldest first
		closed   bool
	}
	counts counts
}

// New listens on a free port and serves. Nothing is dialed before somebody connects.
func New(backend string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{addr: l.Addr().String()}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.mu.backend = backend
	p.mu.listener = l
	p.wg.Go(func() { p.accept(l) })
	return p, nil
}

// Addr is where clients connect, host and port. It never changes.
func (p *Proxy) Addr() string { return p.addr }

// SetBackend makes connections to come go to another address. Those that live stay where they are.
func (p *Proxy) SetBackend(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.backend = addr
}

// OnLink makes f see each connection to come before a byte of it is forwarded, nil for nobody. f runs on a goroutine
// of the proxy, must not block and may call the methods of its Link.
func (p *Proxy) OnLink(f func(*Link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.onLink = f
}

// Refuse closes the listening socket, so that the kernel refuses who connects, until Admit. Links live on.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	l := p.mu.listener
	p.mu.listener = nil
	p.mu.Unlock()
	if l != nil {
		_ = l.Close() // nothing waits in it
	}
}

// Admit ends Refuse. The error says that the port was taken by somebody else meanwhile.
func (p *Proxy) Admit() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed || p.mu.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", p.addr) // does not block
	if err != nil {
		return err
	}
	p.mu.listener = l
	p.wg.Go(func() { p.accept(l) })
	return nil
}

// Links returns those that live, oldest first.
func (p *Proxy) Links() []*Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mu.links)
}

// Each calls f for each link that lives, oldest first, and returns how many there were. The method expression of a
// fault will do: p.Each((*Link).Cut).
func (p *Proxy) Each(f func(*Link)) int {
	links := p.Links()
	for _, l := range links {
		f(l)
	}
	return len(links)
}

// Close resets all links, stops listening and returns when all goroutines of the proxy have ended. It may be called
// again.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.mu.closed = true
	p.mu.Unlock()
	p.Refuse()
	p.cancel()
	p.Each(func(l *Link) { l.Reset(BothSides) })
	p.wg.Wait()
}

// accept serves one listening socket until it is closed.
func (p *Proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p.counts.accepted.Add(1)
		p.wg.Go(func() { p.serve(c.(*net.TCPConn)) })
	}
}

// serve is the life of one connection.
func (p *Proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	backend := p.mu.backend
	p.mu.Unlock()
	d := net.Dialer{Timeout: dialTimeout}
	server, err := d.DialContext(p.ctx, "tcp", backend)
	if err != nil {
		p.counts.undialed.Add(1)
		reset(client)
		return
	}
	l := newLink(p, client, server.(*net.TCPConn))
	p.mu.Lock()
	onLink, closed := p.mu.onLink, p.mu.closed
	p.mu.links = append(p.mu.links, l)
	p.mu.Unlock()
	switch {
	case closed:
		l.Reset(BothSides)
	case onLink != nil:
		onLink(l)
	}
	l.run()
}

// forget takes out a link that has ended.
func (p *Proxy) forget(l *Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.links = slices.DeleteFunc(p.mu.links, func(o *Link) bool { return o == l })
}

// reset closes c with a RST, and without waiting for what was not sent.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // fails on a closed socket only
	_ = c.Close()
}

// counts are of all links.
type counts struct {
	accepted, undialed atomic.Int64
	bytes              [2]atomic.Int64
}

// Counts is a snapshot of what went through a Proxy.
type Counts struct {
	Accepted int64 // connections
	Undialed int64 // of those: the backend could not be reached, the client was reset
	Live     int   // links
	Requests int64 // bytes handed to the kernel towards backends
	Replies  int64 // bytes handed to the kernel towards clients
}

// Counts returns a snapshot.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	live := len(p.mu.links)
	p.mu.Unlock()
	return Counts{
		Accepted: p.counts.accepted.Load(), Undialed: p.counts.undialed.Load(), Live: live,
		Requests: p.counts.bytes[request].Load(), Replies: p.counts.bytes[reply].Load(),
	}
}

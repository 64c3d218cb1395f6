package proxy

import (
	"net"
	"sync"
	"time"
)

// Direction is one way through a link, or both.
type Direction uint8

const (
	Requests Direction = 1 << iota // from the client to the server
	Replies                        // from the server to the client
	BothWays = Requests | Replies
)

// Side is one socket of a link, or both.
type Side uint8

const (
	Client    Side = 1 << iota // the socket that the client dialed
	Server                     // the socket that the proxy dialed
	BothSides = Client | Server
)

// request and reply index lanes.
const (
	request = iota
	reply
)

// Link is one connection through the proxy: two sockets and a lane each way. Its faults may be called from any
// goroutine, also after it has ended; they return at once and are in force for every byte that was not handed to the
// kernel before. Faults of different kinds add up; Cut and Reset end them all.
type Link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	lanes          [2]*lane
	done           chan struct{}
}

func newLink(p *Proxy, client, server *net.TCPConn) *Link {
	l := &Link{proxy: p, client: client, server: server, done: make(chan struct{})}
	l.lanes[request] = newLane(l, client, server, &p.counts.bytes[request])
	l.lanes[reply] = newLane(l, server, client, &p.counts.bytes[reply])
	l.lanes[request].back, l.lanes[reply].back = l.lanes[reply], l.lanes[request]
	return l
}

// run forwards until both lanes have ended.
func (l *Link) run() {
	var wg sync.WaitGroup
	for _, n := range l.lanes {
		wg.Go(n.read)
		wg.Go(n.write)
	}
	wg.Wait()
	_ = l.client.Close()
	_ = l.server.Close()
	l.proxy.forget(l)
	close(l.done)
}

// Done is closed when both sockets are closed and the goroutines of the link have ended.
func (l *Link) Done() <-chan struct{} { return l.done }

// Forwarded is how many bytes were handed to the kernel, towards the server and towards the client.
func (l *Link) Forwarded() (requests, replies int64) {
	return l.lanes[request].sent(), l.lanes[reply].sent()
}

// in calls f for the lanes of d.
func (l *Link) in(d Direction, f func(*lane)) {
	if d&Requests != 0 {
		f(l.lanes[request])
	}
	if d&Replies != 0 {
		f(l.lanes[reply])
	}
}

// Cut ends the link the polite way, with a FIN to both sides. What the proxy held is dropped, and so is what still
// arrives until each side has closed as well.
func (l *Link) Cut() {
	for _, n := range l.lanes {
		n.void(withFIN)
	}
}

// Reset ends sockets with a RST. A side that is not named stays open and silent: what the proxy holds for it is still
// delivered, what it sends is swallowed, until it closes. So the server goes on with the requests of a client that is
// gone.
func (l *Link) Reset(s Side) {
	to, from := l.lanes[request], l.lanes[reply]
	switch s {
	case Client:
		to.deafen()
		from.void(silently)
		reset(l.client)
	case Server:
		from.deafen()
		to.void(silently)
		reset(l.server)
	case BothSides:
		to.void(silently)
		from.void(silently)
		reset(l.client)
		reset(l.server)
	}
}

// HalfClose sends a FIN behind what the proxy holds in direction d and swallows what comes later. The other direction
// works on.
func (l *Link) HalfClose(d Direction) { l.in(d, (*lane).finish) }

// Freeze stops a direction without closing anything: 64 KiB are kept, then the kernel's buffers fill up, then
// the sender stands still. Nobody learns of a FIN or RST either.
func (l *Link) Freeze(d Direction) { l.in(d, func(n *lane) { n.freeze(true) }) }

// Thaw ends Freeze: everything that was kept is delivered, also when the other side has closed meanwhile.
func (l *Link) Thaw(d Direction) { l.in(d, func(n *lane) { n.freeze(false) }) }

// Drip lets n bytes through at a time, and waits for every between them. n = 0 ends it.
func (l *Link) Drip(d Direction, n int, every time.Duration) {
	l.in(d, func(a *lane) { a.drip(n, every) })
}

// Delay holds each byte back for a fixed time without limiting how many are on their way, up to 8 MiB. It holds for
// bytes that arrive from now on; 0 ends it. Order is kept.
func (l *Link) Delay(d Direction, by time.Duration) {
	l.in(d, func(n *lane) { n.holdBack(by) })
}

// CutAfter cuts the link, as Cut does, when exactly n bytes have been handed on in direction d since the link began:
// at once when there were n already. It is exact when it is set before they are, as in OnLink. n < 0 ends it.
func (l *Link) CutAfter(d Direction, n int64) { l.in(d, func(a *lane) { a.cutAfter(n) }) }

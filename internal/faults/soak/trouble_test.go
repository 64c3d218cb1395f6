package soak

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fdengine/fullduplex/internal/faults/proxy"
)

// trouble is one choice of a round: what happens at which site, after how many more answers there.
type trouble struct {
	kind  string
	site  int
	after int           // answers of the site before it begins
	hold  time.Duration // how long it lasts
	n     int           // a size, where the kind has one
	way   proxy.Direction
	side  proxy.Side
}

func (t trouble) String() string {
	return fmt.Sprintf("{%s %s after=%d hold=%v n=%d way=%d side=%d}",
		t.kind, [...]string{"redis", "tube"}[t.site], t.after, t.hold, t.n, t.way, t.side)
}

// act is what a kind does; the rig is at rest before and after it, as far as troubles go.
type act func(r *rig, t trouble)

// kinds are what there is, in the order of the draw. A round of as many troubles has each of them once.
var kinds = []struct {
	name string
	do   act
}{
	{"kill", (*rig).kill},
	{"pause", (*rig).pause},
	{"cut", (*rig).cut},
	{"reset", (*rig).reset},
	{"half close", (*rig).halfClose},
	{"freeze", (*rig).freeze},
	{"black hole", (*rig).blackHole},
	{"late delivery", (*rig).late},
	{"late delivery after a reset", (*rig).lateAfterReset},
	{"drip", (*rig).drip},
	{"delay", (*rig).delay},
	{"cut at byte", (*rig).cutAt},
	{"cut handshakes", (*rig).cutHandshakes},
	{"refuse", (*rig).refuse},
	{"balancer", (*rig).balancer},
	{"kill in a freeze", (*rig).killInFreeze},
}

// choose draws the troubles of a round: each kind in turn from a random place, so that even a few rounds see all.
func choose(rng *rand.Rand, n int, timeout time.Duration) []trouble {
	out := make([]trouble, n)
	order := rng.Perm(len(kinds))
	for i := range out {
		out[i] = trouble{
			kind:  kinds[order[i%len(order)]].name,
			site:  rng.IntN(sites),
			after: 1 + rng.IntN(300),
			hold:  time.Duration(rng.Int64N(int64(2 * timeout))),
			n:     1 + rng.IntN(3000),
			way:   proxy.Direction(1 + rng.IntN(3)),
			side:  proxy.Side(1 + rng.IntN(3)),
		}
	}
	return out
}

func (t trouble) do(r *rig) {
	for _, k := range kinds {
		if k.name == t.kind {
			k.do(r, t)
			return
		}
	}
	panic("no such trouble: " + t.kind)
}

func (r *rig) kill(t trouble) {
	s := r.sites[t.site]
	s.kills++
	s.harm(len(s.proxy.Links()))
	s.server.Kill9()
	r.hold(t.hold)
	s.server.Restart()
}

func (r *rig) pause(t trouble) {
	s := r.sites[t.site]
	s.harm(len(s.proxy.Links()))
	s.server.Stop()
	r.hold(t.hold)
	s.server.Cont()
}

func (r *rig) cut(t trouble) { r.sites[t.site].all((*proxy.Link).Cut) }

// reset leaves the server with what it has of a client that is gone, when only the client is reset; that lasts as
// long as the trouble.
func (r *rig) reset(t trouble) {
	s := r.sites[t.site]
	links := s.all(func(l *proxy.Link) { l.Reset(t.side) })
	r.hold(t.hold)
	for _, l := range links {
		l.Cut()
	}
}

func (r *rig) halfClose(t trouble) {
	s := r.sites[t.site]
	links := s.all(func(l *proxy.Link) { l.HalfClose(t.way) })
	r.hold(t.hold)
	for _, l := range links {
		l.Cut()
	}
}

func (r *rig) freeze(t trouble) {
	links := r.sites[t.site].all(func(l *proxy.Link) { l.Freeze(t.way) })
	r.hold(t.hold)
	for _, l := range links {
		l.Thaw(proxy.BothWays)
	}
}

// blackHole is freeze for connections to come as well, none of which is ever thawed.
func (r *rig) blackHole(t trouble) {
	s := r.sites[t.site]
	hole := func(l *proxy.Link) { l.Freeze(proxy.BothWays) }
	s.proxy.OnLink(hole)
	s.all(hole)
	r.hold(t.hold)
	s.proxy.OnLink(nil)
	s.proxy.Each(func(l *proxy.Link) { l.Reset(proxy.BothSides) })
}

// late keeps requests back until the client has gone on with another connection, and delivers them then: at the redis,
// where old requests can be told from new ones by what they do to order and values, and at the site that was drawn.
func (r *rig) late(t trouble) {
	for site := range sites {
		if site != redisSite && site != t.site {
			continue
		}
		links := r.sites[site].all(func(l *proxy.Link) { l.Freeze(t.way | proxy.Requests) })
		if len(links) == 0 {
			continue
		}
		r.answers(site, t.after)
		for _, l := range links {
			l.Thaw(proxy.BothWays)
		}
	}
}

// lateAfterReset is late for a client that believes the server to be gone, because somebody between them says so. No
// session is fenced after what looks like the server's own end (pool.Dial.Fence), so that order is lost then; that is
// no promise, and only the beanstalkd is asked, of whom no order is expected.
func (r *rig) lateAfterReset(t trouble) {
	t.site = tubeSite
	s := r.sites[t.site]
	links := s.all(func(l *proxy.Link) { l.Freeze(proxy.Requests) })
	r.hold(t.hold / 8)
	for _, l := range links {
		l.Reset(proxy.Client)
	}
	r.answers(t.site, t.after)
	for _, l := range links {
		l.Thaw(proxy.BothWays)
		l.HalfClose(proxy.Requests)
	}
}

func (r *rig) drip(t trouble) {
	s := r.sites[t.site]
	f := func(l *proxy.Link) { l.Drip(t.way, 1+t.n%50, time.Millisecond) }
	r.slow(s, t, f, func(l *proxy.Link) { l.Drip(proxy.BothWays, 0, 0) })
}

func (r *rig) delay(t trouble) {
	s := r.sites[t.site]
	f := func(l *proxy.Link) { l.Delay(t.way, time.Duration(1+t.n%30)*time.Millisecond) }
	r.slow(s, t, f, func(l *proxy.Link) { l.Delay(proxy.BothWays, 0) })
}

// slow does begin to all links, those to come too, and undoes it.
func (r *rig) slow(s *site, t trouble, begin, undo func(*proxy.Link)) {
	s.proxy.OnLink(begin)
	s.all(begin)
	r.hold(t.hold)
	s.proxy.OnLink(nil)
	s.proxy.Each(undo)
}

// cutAt cuts the newest link within the next bytes of one direction, and waits until it has.
func (r *rig) cutAt(t trouble) {
	links := r.sites[t.site].proxy.Links()
	if len(links) == 0 {
		return
	}
	l := links[len(links)-1]
	requests, replies := l.Forwarded()
	if t.way&proxy.Requests != 0 {
		l.CutAfter(proxy.Requests, requests+int64(t.n))
	}
	if t.way&proxy.Replies != 0 {
		l.CutAfter(proxy.Replies, replies+int64(t.n))
	}
	r.sites[t.site].harm(1)
	r.await("the cut", l.Done())
}

// cutHandshakes cuts every new connection within its first bytes.
func (r *rig) cutHandshakes(t trouble) {
	s := r.sites[t.site]
	s.proxy.OnLink(func(l *proxy.Link) {
		s.harm(1)
		l.CutAfter(t.way, int64(t.n%200))
	})
	s.all((*proxy.Link).Cut)
	r.hold(t.hold)
	s.proxy.OnLink(nil)
	s.proxy.Each((*proxy.Link).Cut)
}

func (r *rig) refuse(t trouble) {
	s := r.sites[t.site]
	s.proxy.Refuse()
	s.all((*proxy.Link).Cut)
	r.hold(t.hold)
	if err := s.proxy.Admit(); err != nil {
		r.t.Fatal(err)
	}
}

// balancer is one that accepts and hangs up, having nobody behind it.
func (r *rig) balancer(t trouble) {
	s := r.sites[t.site]
	s.proxy.SetBackend(r.nobody)
	s.all((*proxy.Link).Cut)
	r.hold(t.hold)
	s.proxy.SetBackend(s.addr)
	s.proxy.Each((*proxy.Link).Cut)
}

// killInFreeze kills a server of which the client learns nothing at once.
func (r *rig) killInFreeze(t trouble) {
	s := r.sites[t.site]
	s.kills++
	links := s.all(func(l *proxy.Link) { l.Freeze(t.way) })
	s.server.Kill9()
	s.server.Restart()
	r.hold(t.hold)
	for _, l := range links {
		l.Thaw(proxy.BothWays)
	}
}

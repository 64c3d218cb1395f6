package fdengine_test

import (
	"fmt"
	"os"
	"sort"
	"syscall"
	"time"

	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// act makes what the server does with one attempt of pl.
func (g *generator) act(pl *plan) act {
	named := func(name string, a scripted.Action) act { return act{Action: a, name: name} }
	reset := g.IntN(2) == 0
	quiet := []act{
		named("drop before", scripted.Action{DropBefore: true, Reset: reset}),
		named("drop after", scripted.Action{DropAfter: true, Reset: reset}),
		named("delay", scripted.Action{Delay: g.span(time.Millisecond, 80*time.Millisecond)}),
		named("late drop before", scripted.Action{Delay: g.span(time.Millisecond, 40*time.Millisecond), DropBefore: true, Reset: reset}),
		named("late drop after", scripted.Action{Delay: g.span(time.Millisecond, 40*time.Millisecond), DropAfter: true, Reset: reset}),
		named("stall", scripted.Stall()),
		named("mute", scripted.Mute()),
	}
	if pl.shape == noted {
		return pick(g, quiet...)
	}
	loud := append(quiet,
		named("half reply", scripted.HalfReply()),
		named("push before", scripted.Action{PushBefore: scripted.PushFrame("news", "of", "old")}),
		named("push after", scripted.Action{PushAfter: scripted.PushFrame("news", "of", "old")}),
		named("close after", scripted.Action{Close: true}),
		act{name: "big answer", big: pick(g, 100, 1500, 5000, 70000)},
	)
	if g.p.surplus {
		loud = append(loud, named("surplus", scripted.Surplus("+extra\r\n")))
	}
	if g.refuse {
		for range 4 {
			loud = append(loud, g.refusal())
		}
	}
	return pick(g, loud...)
}

func (g *generator) refusal() act {
	lines := []string{"LOADING soon", "TRYAGAIN retry=7", "BUSY", "READONLY no", "ERR no"}
	if g.p.opt.reroute != rerouteNone {
		lines = append(lines, "MOVED 1 there:1", "ASK 1 there:1", "MOVED 2 there:1")
	}
	line := pick(g, lines...)
	if g.IntN(2) == 0 {
		return act{Action: scripted.Refuse(line), name: line}
	}
	return act{Action: scripted.Action{Refuse: line, Delay: g.span(time.Millisecond, 20*time.Millisecond)}, name: "late " + line}
}

// dial makes what is wrong with one connection.
func (g *generator) dial() dialFault {
	if !g.hit(g.net * 1.5) {
		return dialFault{}
	}
	d := g.dialOnce()
	if d.err != nil || g.IntN(3) > 0 {
		return d
	}
	if more := g.dialOnce(); more.err == nil {
		one, two := d.arm, more.arm
		d.name += " and " + more.name
		d.arm = func(c, s *memnet.Conn) { one(c, s); two(c, s) }
	}
	return d
}

func (g *generator) dialOnce() dialFault {
	// The handshake is 14 bytes out and 7 in; commands are 30 bytes and more.
	at := int64(pick(g, g.IntN(30), 14+g.IntN(200), 14+g.IntN(3000), 14+g.IntN(60000)))
	cut := memnet.Cut{Reset: g.IntN(2) == 0, Drop: g.IntN(2) == 0}
	out := g.IntN(3) > 0
	lane := func(c *memnet.Conn) *memnet.Lane {
		if out {
			return c.Out()
		}
		return c.In()
	}
	side := map[bool]string{true: "out", false: "in"}[out]
	switch g.IntN(12) {
	case 0:
		return dialFault{name: "refused", err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case 1:
		return dialFault{name: "black hole", err: memnet.ErrBlackHole}
	case 2, 3, 4, 5:
		return dialFault{name: fmt.Sprintf("cut %s at %d %+v", side, at, cut), arm: func(c, _ *memnet.Conn) { lane(c).CutAt(at, cut) }}
	case 6:
		n := 14 + g.IntN(100)
		return dialFault{name: fmt.Sprintf("writes fail after %d bytes", n), arm: func(c, _ *memnet.Conn) { c.Out().ShortWrites(n, syscall.ECONNRESET) }}
	case 7:
		return dialFault{name: fmt.Sprintf("black hole %s from %d", side, at), arm: func(c, _ *memnet.Conn) { lane(c).SwallowAt(at) }}
	case 8:
		return dialFault{name: fmt.Sprintf("stall %s at %d", side, at), arm: func(c, _ *memnet.Conn) { lane(c).StallAt(at) }}
	case 9:
		d := g.span(time.Millisecond, 30*time.Millisecond)
		return dialFault{name: fmt.Sprintf("delay %s %v", side, d), arm: func(c, _ *memnet.Conn) { lane(c).Delay(d) }}
	case 10:
		if d := g.span(10*time.Microsecond, time.Millisecond); g.IntN(3) == 0 {
			return dialFault{name: fmt.Sprintf("drip %s %v", side, d), arm: func(c, _ *memnet.Conn) { lane(c).Drip(d) }}
		}
		n := pick(g, -1, 1+g.IntN(20), 1+g.IntN(300))
		return dialFault{name: fmt.Sprintf("buffer %s %d", side, n), arm: func(c, s *memnet.Conn) { lane(c).SetBuffer(n) }}
	default:
		return dialFault{name: "inexact", arm: func(c, _ *memnet.Conn) { c.SetExactWrite(false) }}
	}
}

// trouble makes what happens to the world in time, and what the leaser does wrong.
func (g *generator) trouble() {
	p := g.p
	p.leases, p.putFail = map[int]leaseFault{}, map[int]bool{}
	for n := 1; n <= 4; n++ {
		if g.hit(g.net / 3) {
			p.leases[n] = 1 + leaseFault(g.IntN(int(leaseEmpty)))
		}
		if g.hit(g.net / 4) {
			p.putFail[n] = true
		}
	}
	add := func(at time.Duration, name string, do func(w *world)) {
		p.events = append(p.events, event{at, name, do})
	}
	pair := func(name string, set func(w *world, on bool)) {
		at := g.span(0, 200*time.Millisecond)
		add(at, name, func(w *world) { set(w, true) })
		add(at+g.span(time.Millisecond, 150*time.Millisecond), name+" ends", func(w *world) { set(w, false) })
	}
	for range 4 {
		if !g.hit(g.net) {
			continue
		}
		at := g.span(0, 200*time.Millisecond)
		switch g.IntN(10) {
		case 0, 1:
			add(at, "handoff mark", func(w *world) { w.mark() })
		case 2:
			add(at, "reset", func(w *world) { w.server.ResetConns() })
		case 3:
			add(at, "server closes", func(w *world) { w.server.CloseConns() })
		case 4:
			pair("freeze reads", func(w *world, on bool) { w.server.FreezeReads(on) })
		case 5:
			pair("freeze execution", func(w *world, on bool) { w.server.FreezeExec(on) })
		case 6:
			pair("freeze replies", func(w *world, on bool) { w.server.FreezeReplies(on) })
		case 7:
			pair("refuse connections", func(w *world, on bool) { w.server.RefuseConns(on) })
		case 8:
			add(at, "push", func(w *world) { w.push() })
		case 9:
			if g.refuse && !g.quiet && !g.prefix && p.opt.reroute == rerouteNone {
				line := pick(g, "LOADING all", "READONLY all")
				pair(line, func(w *world, on bool) { w.refuseAll(line, on) })
			}
		}
	}
	sort.SliceStable(p.events, func(i, j int) bool { return p.events[i].at < p.events[j].at })
}

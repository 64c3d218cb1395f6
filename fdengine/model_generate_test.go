package fdengine_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

// generator makes a program. The chances are drawn per program, so that there are programs full of one kind of
// trouble as well as mixed ones.
type generator struct {
	*rand.Rand
	p *program

	server, net, leave, decode, encode, judge, done float64 // chances per command, connection, call
	refuse, quiet, prefix                           bool    // may refuse; has commands without reply; with several frames
	ids                                             int
}

func generate(seed uint64) *program {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x5eed)), p: &program{seed: seed}}
	chance := func() float64 { return [...]float64{0, 0, 0.05, 0.2, 0.5}[g.IntN(5)] }
	g.server, g.net, g.leave = chance(), chance(), chance()
	g.decode, g.encode, g.judge, g.done = chance()/4, chance()/4, chance()/2, chance()/2
	g.p.fenced = g.IntN(4) > 0
	g.p.surplus = g.IntN(16) == 0
	g.refuse, g.quiet, g.prefix = !g.p.surplus && g.IntN(3) > 0, g.IntN(4) == 0, g.IntN(3) == 0
	if g.p.surplus {
		g.judge = 0
	}
	g.p.heal = g.IntN(2) == 0
	g.options()
	for range 1 + g.IntN(6) {
		g.p.callers = append(g.p.callers, g.caller())
	}
	for range 1 + g.IntN(6) {
		g.p.dials = append(g.p.dials, g.dial())
	}
	g.trouble()
	g.ends()
	return g.p
}

func (g *generator) hit(chance float64) bool { return g.Float64() < chance }

func (g *generator) span(low, high time.Duration) time.Duration {
	return low + time.Duration(g.Int64N(int64(high-low)+1))
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) options() {
	const ms = time.Millisecond
	o := &g.p.opt
	o.Window = pick(g, 0, 0, 1, 2, 1+g.IntN(8), 64)
	o.Queue = pick(g, 0, 0, 1, 1+g.IntN(8), 32)
	o.WindowBytes = pick(g, 0, 0, 0, 60, 500, 4096, 64<<10)
	o.QueueBytes = pick(g, 0, 0, 0, 200, 4096, 64<<10)
	o.ReadTimeout = pick(g, 20*ms, 50*ms, 200*ms, 0, -1)
	o.WriteTimeout = pick(g, 20*ms, 50*ms, 200*ms, 0)
	o.PingEvery = pick(g, 0, -1, 15*ms, 100*ms)
	o.Budget = pick(g, 0, 1, 2, -1)
	o.BackoffMin = pick(g, ms, 5*ms, 0)
	o.BackoffMax = pick(g, 10*ms, 40*ms, 0)
	if o.BackoffMax != 0 && o.BackoffMin == 0 {
		o.BackoffMin = ms
	}
	o.MaxOutage = pick(g, 0, 100*ms, 500*ms, -1)
	o.MaxRefusals = pick(g, 0, 0, 1, 3, -1)
	o.MaxRedirects = pick(g, 0, 1, 3)
	o.StrictOrder = g.IntN(6) == 0
	if g.IntN(8) == 0 {
		o.IdleRelease = 30 * time.Second
	}
	if g.IntN(8) == 0 {
		o.MaxHold = time.Second
	}
	if g.IntN(6) == 0 {
		o.MaxReply = 2048
	}
	if g.IntN(8) == 0 {
		o.MaxRequest = 8192
	}
	o.limiter = pick(g, 0, 0, 0, 0, 2, 20)
	o.observer = g.IntN(2) == 0
	o.pushFail = pick(g, 0, 0, 10)
	if g.refuse {
		o.reroute = pick(g, rerouteNone, rerouteNone, rerouteNone, rerouteHere, rerouteMixed, rerouteAway)
		if o.reroute == rerouteAway {
			g.p.fenced = false // the connections of one engine do not end when the other one dials
		}
	}
}

func (g *generator) caller() (c caller) {
	streams, many := g.IntN(3), 1+g.IntN(16)
	streamy := g.Float64()
	eager := streams > 0 && g.IntN(3) == 0 // one stream, much of it in flight at once
	for range many {
		s := step{stream: -1, op: pick(g, opDo, opDo, opDo, opDo, opSubmit, opSubmit, opSubmit, opTry, opBatch, opLot, opPing, opPause, opFlush, opReset)}
		switch {
		case eager && g.IntN(4) > 0:
			s.op, s.stream = pick(g, opSubmit, opSubmit, opTry, opDo), 0
		case streams > 0 && g.hit(streamy):
			s.stream = g.IntN(streams)
		}
		if s.stream < 0 && (s.op == opFlush || s.op == opReset) {
			s.op = opSubmit
		}
		if g.IntN(4) == 0 {
			s.wait = g.span(0, 10*time.Millisecond)
		}
		if g.hit(g.leave) {
			s.ctx = leave{1 + leaveHow(g.IntN(int(onDecode))), pick(g, 0, g.span(0, time.Millisecond), g.span(0, 40*time.Millisecond))}
		}
		switch s.op {
		case opDo, opSubmit, opTry:
			s.cmds = []*plan{g.plan(true)}
			if pl := s.cmds[0]; eager && g.refuse && s.stream == 0 && pl.shape != noted && g.IntN(6) == 0 {
				pl.acts = []act{g.refusal()}
			}
		case opBatch, opLot:
			if s.op == opBatch {
				s.stream = -1
			}
			for range 1 + g.IntN(12) {
				s.cmds = append(s.cmds, g.plan(true))
			}
		case opPause:
			s.wait = g.span(10*time.Millisecond, 200*time.Millisecond)
			if g.p.opt.IdleRelease > 0 && g.IntN(4) == 0 {
				s.wait = 32 * time.Second
			}
			if g.p.opt.MaxHold > 0 && g.IntN(4) == 0 {
				s.wait = time.Second
			}
		}
		if s.op != opDo && s.op != opBatch && s.ctx.how >= onArrival {
			s.ctx.how = cancelled
		}
		c.steps = append(c.steps, s)
	}
	return c
}

func (g *generator) plan(parent bool) *plan {
	g.ids++
	pl := &plan{id: g.ids, token: fmt.Sprintf("c%d", g.ids)}
	pl.class = pick(g, carry.NoRetry, carry.Replay, carry.Replay)
	pl.budget = pick(g, 0, 0, 1, 2, 3, -1)
	switch {
	case g.quiet && g.IntN(4) == 0:
		pl.shape = noted
	case g.prefix && g.IntN(3) == 0:
		pl.shape = pick(g, asking, double)
	}
	if g.hit(g.leave / 2) {
		pl.timeout = pick(g, time.Millisecond, g.span(time.Millisecond, 50*time.Millisecond))
	}
	switch n := g.IntN(20); {
	case n == 0:
		pl.size = 16<<10 + g.IntN(24<<10)
	case n < 4:
		pl.size = 100 + g.IntN(4000)
	default:
		pl.size = g.IntN(60)
	}
	if g.hit(g.encode) {
		pl.encode = pick(g, faultError, faultPanic)
	}
	if g.hit(g.decode) {
		pl.decode = pick(g, faultError, faultPanic, faultExit)
	}
	if g.hit(g.judge) && pl.shape != noted {
		pl.judge = 1 + judgeMode(g.IntN(int(judgeCuts)))
		pl.times = 1 + g.IntN(3)
	}
	if parent && g.hit(g.done) {
		pl.done = pick(g, donePanics, doneExits, doneTries, doneTries, doneBlocks)
		if !g.p.heal && g.IntN(8) == 0 {
			pl.done = pick(g, doneCloses, doneShuts)
		}
		switch pl.done {
		case doneTries:
			pl.child = g.plan(g.IntN(2) == 0)
		case doneBlocks:
			g.p.loose = true
		}
	}
	switch {
	case !g.hit(g.server):
	case g.refuse && pl.shape != noted && g.IntN(4) == 0:
		a := g.refusal()
		for range 1 + g.IntN(12) {
			pl.acts = append(pl.acts, a)
		}
	default:
		for range pick(g, 1, 1, 1, 2, 3, 6) {
			pl.acts = append(pl.acts, g.act(pl))
		}
	}
	return pl
}

// ends decides how and when the engine is closed.
func (g *generator) ends() {
	if g.p.heal {
		return
	}
	for range pick(g, 1, 1, 2, 4) {
		c := closing{at: pick(g, -1, g.span(0, 20*time.Millisecond), g.span(0, 300*time.Millisecond)), shut: g.IntN(2) == 0}
		c.bound = pick(g, 0, g.span(0, 30*time.Millisecond), 2*time.Second)
		g.p.closing = append(g.p.closing, c)
	}
}

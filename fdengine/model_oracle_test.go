package fdengine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
)

// evidence is what the witnesses say after a run: the client's wires, the server, the records.
type evidence struct {
	w       *world
	execs   map[string]int
	order   map[string]int // token: place of its first execution
	wires   [][]sent       // of connections that were lent
	conns   []*wire
	left    map[string]int    // token: whole sends on the wires
	first   map[string][2]int // token: wire and place of its first send
	exact   bool              // all connections know what they accepted
	surplus bool
	bad     []string
}

func (v *evidence) fail(format string, args ...any) {
	v.bad = append(v.bad, fmt.Sprintf(format, args...))
}

// judge holds everything that was seen against the promises. The run is over: nothing else moves.
func (w *world) judge() []string {
	w.mu.Lock()
	defer w.mu.Unlock() // orders this behind timers that fired last
	v := &evidence{w: w, execs: w.server.AllExecutions(), order: map[string]int{}, left: map[string]int{},
		first: map[string][2]int{}, exact: true, surplus: w.p.surplus, bad: w.bad}
	for i, token := range w.server.Order() {
		if _, ok := v.order[token]; !ok {
			v.order[token] = i
		}
	}
	for _, c := range w.wires {
		log, err := c.sent()
		if err != nil {
			v.fail("P1: what was written is no stream of requests: %v", err)
		}
		if c.loans == 0 {
			continue
		}
		v.exact = v.exact && c.exact
		for at, s := range log {
			if s.token == "" {
				continue
			}
			if r := w.byToken[s.token]; r != nil && !whole(r.plan, log, at) {
				v.fail("P1: on wire %d %s is not behind the rest of its own record", len(v.wires), s.token)
			}
			if v.left[s.token]++; v.left[s.token] == 1 {
				v.first[s.token] = [2]int{len(v.wires), at}
			}
		}
		v.wires, v.conns = append(v.wires, log), append(v.conns, c)
	}
	for _, r := range w.records {
		v.settled(r)
		v.fate(r)
		v.sends(r)
		v.times(r)
	}
	for _, l := range w.lanes {
		v.wireOrder(l)
		if l.stream != nil {
			v.gaps(l)
		}
	}
	v.replays()
	v.strict()
	v.alone()
	v.books()
	return v.bad
}

// whole says whether what stands in front of the request at at is what pl put there.
func whole(pl *plan, log []sent, at int) bool {
	switch pl.shape {
	case asking:
		return at > 0 && log[at-1].verb == "ASKING"
	case double:
		return at > 0 && log[at-1].token == "p"+pl.token
	}
	return true
}

// settled is P1 and P9: one outcome, no trace of what was rejected, and hands off afterwards.
func (v *evidence) settled(r *record) {
	tok := r.plan.token
	if r.told != 1 {
		v.fail("P1: %s was settled %d times", tok, r.told)
	}
	if r.touched != "" {
		v.fail("P2/P9: %s: %s", tok, r.touched)
	}
	if r.decodes > 1 {
		v.fail("P1: %s was decoded %d times", tok, r.decodes)
	}
	if r.rejected && (v.left[tok] > 0 || v.execs[tok] > 0 || fdengine.FateOf(r.err) != carry.NotSent) {
		v.fail("P1: %s was rejected with %v and left a trace", tok, r.err)
	}
	if r.left > 0 && (r.op == opDo || r.op == opBatch) && r.settled > max(r.left, r.asked) {
		v.fail("P9: %s returned at %v, its context had ended at %v", tok, r.settled, r.left)
	}
}

// fate is P2 and P3.
func (v *evidence) fate(r *record) {
	tok, n, left, refused := r.plan.token, v.execs[r.plan.token], v.left[r.plan.token], v.w.refused[r.plan.token]
	if r.exited {
		alone := v.w.p.seed%3 == 0 && r.op == opDo && r.ctx.how == stays && r.lane != nil && r.lane.stream == nil
		if !alone || r.plan.decode != faultExit && r.plan.judge != judgeExits {
			v.fail("P11: %s ended the goroutine of its caller", tok)
		}
		return
	}
	if r.err == nil {
		switch {
		case r.plan.shape == noted:
		case v.surplus:
		case n == 0:
			v.fail("P3: %s succeeded and was not executed", tok)
		case r.decodes != 1:
			v.fail("P2: %s succeeded without its reply", tok)
		case r.plan.decode != faultNone:
			v.fail("P1: %s succeeded although its decoder failed", tok)
		case !r.maybe && n != 1:
			v.fail("P3: %s was executed %d times, its reply says that no earlier send may have run", tok, n)
		}
		return
	}
	var ce *fdengine.CallError
	var se *scripted.ServerError
	var pe *panics.Error
	called, answered := errors.As(r.err, &ce), errors.As(r.err, &se)
	fate := fdengine.FateOf(r.err)
	if errors.Is(r.err, fdengine.ErrNotSent) != (called && fate == carry.NotSent) ||
		errors.Is(r.err, fdengine.ErrMaybeExecuted) != (called && fate == carry.MaybeExecuted) {
		v.fail("P3: %s: the classes of %v contradict its fate", tok, r.err)
	}
	if errors.Is(r.err, fdengine.ErrTooLarge) && fate == carry.MaybeExecuted {
		v.fail("P3: %s is not the one that is too large: %v", tok, r.err)
	}
	switch fate {
	case carry.NotSent:
		if n > 0 || left > refused && !v.surplus {
			v.fail("P3: %s is not sent, has left %d times, %d refused, executed %d: %v", tok, left, refused, n, r.err)
		}
	case carry.MaybeExecuted:
		if called && ce.Sends == 0 {
			v.fail("P3: %s may have been executed without a send: %v", tok, r.err)
		}
		if left == 0 && v.exact && (errors.Is(r.err, fdengine.ErrUnavailable) || errors.Is(r.err, fdengine.ErrDenied) || len(v.wires) == 0) {
			v.fail("P3: %s waited and never left, and is said to have: %v", tok, r.err)
		}
	case carry.Answered:
		switch {
		case v.surplus:
		case answered && n > 0:
			v.fail("P3: %s was refused for good and executed: %v", tok, r.err)
		case left == 0:
			v.fail("P3: %s was answered and never left: %v", tok, r.err)
		case !answered && !errors.Is(r.err, fdengine.ErrTooLarge) && !errors.Is(r.err, errDecode) && !errors.As(r.err, &pe):
			v.fail("P3: %s was answered with %v", tok, r.err)
		case !answered && n == 0 && refused == 0:
			v.fail("P3: %s was answered and not executed: %v", tok, r.err)
		case r.maybe && len(r.answer) > 0 && r.answer[0] == '-':
			v.fail("P3: %s is answered by a refusal, an earlier send may have run: %v", tok, r.err)
		}
	}
}

// sends is P4 and P5, and the count of sends that every outcome carries.
func (v *evidence) sends(r *record) {
	tok, n, left, refused := r.plan.token, v.execs[r.plan.token], v.left[r.plan.token], v.w.refused[r.plan.token]
	budget := v.w.budget(r.plan)
	name := "P5"
	if r.plan.class == carry.NoRetry {
		name = "P4"
	}
	if n > budget+1 {
		v.fail("%s: %s with budget %d was executed %d times", name, tok, budget, n)
	}
	if left > budget+1+refused {
		v.fail("%s: %s with budget %d left %d times, %d of them refused", name, tok, budget, left, refused)
	}
	o := v.w.p.opt
	if most := max(or(o.MaxRefusals, 32), 0) + max(or(o.MaxRedirects, 8), 0) + budget + 2; refused > most {
		v.fail("P5: %s was refused %d times, at most %d are allowed", tok, refused, most)
	}
	if r.plan.shape == noted && left > 1 {
		v.fail("P5: %s expects no reply and was sent %d times", tok, left)
	}
	if r.err == nil && r.plan.shape != noted && !v.surplus {
		v.counted(r, r.sends, true)
	} else if o.reroute == rerouteNone && r.err != nil {
		v.counted(r, r.sends, false)
	}
}

// counted compares the sends that an outcome speaks of with those on the wire.
func (v *evidence) counted(r *record, sends int, success bool) {
	tok, left := r.plan.token, v.left[r.plan.token]
	var ce *fdengine.CallError
	final := success
	if !success {
		if !errors.As(r.err, &ce) {
			return
		}
		sends = ce.Sends
		budget, cut := errors.Is(r.err, fdengine.ErrBudget), ce.Class == nil && ce.Fate == carry.MaybeExecuted
		final = budget || ce.Fate == carry.NotSent || cut && !withdrawn(r) && r.decodes == 0
		if floor := v.w.budget(r.plan) + 1; budget && v.exact && left < floor {
			v.fail("P5: the budget of %s is spent after %d sends, it has %d: %v", tok, left, floor, r.err)
		}
		if !budget && cut && final && r.plan.class == carry.Replay && r.plan.shape != noted && v.w.p.opt.limiter == 0 {
			v.fail("P5: %s may go again and failed: %v", tok, r.err)
		}
	}
	if sends < left && !(r.plan.shape == noted) || final && v.exact && sends != left {
		v.fail("P3: %s speaks of %d sends, %d left: %v", tok, sends, left, r.err)
	}
}

// withdrawn says whether the outcome of r is that its caller left.
func withdrawn(r *record) bool {
	var ce *fdengine.CallError
	return r.op != opSubmit && r.op != opTry && errors.As(r.err, &ce) && ce.Class == nil &&
		(errors.Is(ce.Cause, context.Canceled) || errors.Is(ce.Cause, context.DeadlineExceeded))
}

func (w *world) budget(p *plan) int {
	budget := w.p.opt.Budget
	if budget == 0 {
		budget = 3
	}
	if p.budget != 0 {
		budget = p.budget
	}
	if p.class == carry.NoRetry {
		budget = 0
	}
	return max(budget, 0)
}

// times is about how long an outcome may take, and how long a failure for want of a connection must.
func (v *evidence) times(r *record) {
	p := v.w.p
	tok := r.plan.token
	if by := r.plan.timeout; by > 0 && !r.rejected && r.accepted > 0 && !p.loose {
		if took := r.settled - r.accepted; took > by+40*time.Millisecond {
			v.fail("P9: %s was to settle within %v, took %v: %v", tok, by, took, r.err)
		}
	}
	if r.op == opSubmit && r.ctx.how == deadline && !r.rejected && !p.loose {
		if took := r.settled - r.asked; took > r.ctx.at+40*time.Millisecond {
			v.fail("P9: %s had a deadline in %v, took %v: %v", tok, r.ctx.at, took, r.err)
		}
	}
	if errors.Is(r.err, fdengine.ErrUnavailable) && !p.permanent() {
		outage := p.opt.MaxOutage
		if outage == 0 {
			outage = 30 * time.Second
		}
		if took := r.settled - r.asked; outage < 0 || took < outage-20*time.Millisecond {
			v.fail("P5: %s failed for an outage of %v after %v: %v", tok, outage, took, r.err)
		}
	}
}

func (p *program) permanent() bool {
	for _, f := range p.leases {
		if f == leasePermanent {
			return true
		}
	}
	return false
}

// books is P7, P8 and P1 in numbers: what the engine counted, and what it gave back.
func (v *evidence) books() {
	w, s := v.w, v.w.Stats()
	if w.second != nil {
		o := w.second.Stats()
		if o.Rejected != 0 || o.QueueCommands != 0 || o.InFlightCommands != 0 {
			v.fail("P8: the second engine at the end: %+v", o)
		}
		s.Accepted += o.Accepted - s.Moved - o.Moved // each counts what it adopted
		s.Moved = 0
		s.Settled, s.Answered, s.NotSent, s.Maybe = s.Settled+o.Settled, s.Answered+o.Answered, s.NotSent+o.NotSent, s.Maybe+o.Maybe
	}
	if s.Accepted != s.Settled+s.Moved || s.Settled != s.Answered+s.NotSent+s.Maybe {
		v.fail("P1: the books are not even: %+v", s)
	}
	if got := s.Accepted + s.Rejected; got != uint64(w.calls) {
		v.fail("P1: %d calls, %d accepted and %d rejected", w.calls, s.Accepted, s.Rejected)
	}
	if s.QueueCommands != 0 || s.QueueBytes != 0 || s.InFlightCommands != 0 || s.InFlightBytes != 0 {
		v.fail("P8: gauges at the end: %+v", s)
	}
	if w.p.opt.observer && uint64(w.samples) != s.Settled {
		v.fail("P1: %d samples of %d outcomes", w.samples, s.Settled)
	}
	denied := 0
	for _, r := range w.records {
		if errors.Is(r.err, fdengine.ErrDenied) {
			denied++
		}
	}
	if w.denied > 4 && denied == 0 && w.p.opt.PingEvery < 0 { // else it may have been pings
		v.fail("P11: %d claims were denied, and no command failed for it", w.denied)
	}
	if err := w.leaser.Check(); err != nil {
		v.fail("P7: %v", err)
	}
	for _, f := range w.faults {
		v.fail("internal fault: %s", f)
	}
}

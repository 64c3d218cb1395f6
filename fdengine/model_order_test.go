package fdengine_test

import (
	"errors"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// wireOrder is P6 for one lane: commands leave for the first time in the order of their submission, and, when the
// connections are fenced, those of a stream are first executed in that order.
func (v *evidence) wireOrder(l *lane) {
	if v.w.second != nil {
		return
	}
	var last, lastRun *record
	for _, r := range l.all {
		tok := r.plan.token
		if at, sent := v.first[tok]; sent {
			if last != nil && before(at, v.first[last.plan.token]) {
				v.fail("P6: %s of %s left before %s", tok, l.name, last.plan.token)
			}
			last = r
		}
		if l.stream == nil || !v.w.p.fenced || v.surplus || v.again(r) {
			continue
		}
		if at, ran := v.order[tok]; ran {
			if lastRun != nil && at < v.order[lastRun.plan.token] {
				v.fail("P6: %s of %s was executed before %s", tok, l.name, lastRun.plan.token)
			}
			lastRun = r
		}
	}
}

func before(a, b [2]int) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// again says whether r was refused, or judged so that it goes again although it was answered.
func (v *evidence) again(r *record) bool {
	return v.w.refused[r.plan.token] > 0 || r.plan.judge == judgeRetry
}

// gaps is P6 for a stream. A gap is a command that failed: it has no answer, and was not withdrawn by its caller
// before it was sent.
func (v *evidence) gaps(l *lane) {
	if v.surplus || v.w.second != nil {
		return
	}
	for i, r := range l.all {
		if errors.Is(r.err, fdengine.ErrStreamBroken) && !v.w.p.opt.StrictOrder && !v.cause(l.all[:i]) {
			v.fail("P6: %s of %s is broken, and nothing before it failed", r.plan.token, l.name)
		}
		v.overtaken(l, i)
		if !v.gap(r) {
			continue
		}
		tok := r.plan.token
		for _, later := range l.all[i+1:] {
			if later.epoch != r.epoch {
				break
			}
			switch next := later.plan.token; {
			case v.execs[tok] == 0 && v.execs[next] > 0 && (!withdrawn(r) || v.left[tok] > 0):
				v.fail("P6: %s of %s was executed behind the gap %s (%v)", next, l.name, tok, r.err)
			case later.plan.shape == noted, withdrawn(r):
			case fdengine.FateOf(later.err) == carry.Answered:
				v.fail("P6: %s of %s was answered (%v) behind the gap %s (%v)", next, l.name, later.err, tok, r.err)
			}
		}
	}
}

// overtaken is the rule for refusals in a stream: what was refused is not executed any more when something behind it
// was. The one behind it was answered where it was sent the first time, so that the refusal had been read before.
func (v *evidence) overtaken(l *lane, i int) {
	r := l.all[i]
	at, ran := v.order[r.plan.token]
	if !ran || r.plan.shape == noted || !v.w.p.fenced && v.left[r.plan.token] > 1 {
		return // without fencing an old connection may execute it long after it was sent again and refused
	}
	for _, later := range l.all[i+1:] {
		tok := later.plan.token
		if later.epoch != r.epoch {
			return
		}
		if later.err == nil && later.plan.shape != noted && v.left[tok] == 1 && v.execs[tok] > 0 && v.order[tok] < at {
			v.fail("P6: %s of %s was executed behind %s, which was submitted after it", r.plan.token, l.name, tok)
		}
	}
}

// gap says whether r failed in a way that breaks its stream for certain. A refusal is a gap too, but those in flight
// behind it may have run already.
func (v *evidence) gap(r *record) bool {
	switch {
	case r.err == nil, fdengine.FateOf(r.err) == carry.Answered, v.again(r), r.rejected, r.plan.shape == noted:
		return false
	case withdrawn(r):
		return fdengine.FateOf(r.err) == carry.MaybeExecuted
	case errors.Is(r.err, fdengine.ErrClosed), errors.Is(r.err, fdengine.ErrStreamBroken), v.unaccepted(r):
		return false
	}
	return true
}

// unaccepted says whether a Do never came as far as the queue.
func (v *evidence) unaccepted(r *record) bool {
	return r.plan.encode != faultNone || errors.Is(r.err, fdengine.ErrQueueFull) || errors.Is(r.err, fdengine.ErrTooLarge)
}

// cause says whether one of rs may have broken their stream.
func (v *evidence) cause(rs []*record) bool {
	for _, r := range rs {
		switch {
		case v.again(r):
			return true
		case r.err == nil, v.unaccepted(r), r.rejected, fdengine.FateOf(r.err) == carry.Answered:
		case withdrawn(r) && fdengine.FateOf(r.err) == carry.NotSent:
		default:
			return true
		}
	}
	return false
}

// steady are the tokens that no refusal moved, neither their own nor one in their stream.
func (v *evidence) steady() map[string]*record {
	held := map[*lane]bool{}
	for _, r := range v.w.records {
		if v.again(r) && r.lane != nil {
			held[r.lane] = true
		}
	}
	out := map[string]*record{}
	for _, r := range v.w.records {
		// Carries that are adopted go before what stays here, which commands of a stream do.
		stays := r.lane != nil && r.lane.stream != nil && v.w.p.opt.reroute != rerouteNone
		if !v.again(r) && !stays && (r.lane == nil || r.lane.stream == nil || !held[r.lane]) {
			out[r.plan.token] = r
		}
	}
	return out
}

// replays is P6 for a reconnect: what left before goes first, in the order in which it left.
func (v *evidence) replays() {
	if v.w.second != nil {
		return
	}
	steady := v.steady()
	for n := 1; n < len(v.wires); n++ {
		fresh, last := "", [2]int{}
		lastTok := ""
		seen := map[string]bool{}
		for at, s := range v.wires[n] {
			if steady[s.token] == nil || seen[s.token] {
				continue
			}
			seen[s.token] = true
			first := v.first[s.token]
			switch {
			case first == [2]int{n, at}:
				fresh = s.token
			case fresh != "":
				v.fail("P6: on wire %d %s is sent again behind %s, which had not left before", n, s.token, fresh)
			case before(first, last):
				v.fail("P6: on wire %d %s is sent again behind %s, which had left after it", n, s.token, lastTok)
			default:
				last, lastTok = first, s.token
			}
		}
	}
}

// strict is P6 with StrictOrder: when a command fails at a cut, nothing that was published behind it goes out again.
func (v *evidence) strict() {
	if !v.w.p.opt.StrictOrder || !v.exact || v.w.p.opt.reroute != rerouteNone {
		return
	}
	steady := v.steady()
	for tok, r := range steady {
		var ce *fdengine.CallError
		if !errors.As(r.err, &ce) || withdrawn(r) || ce.Fate != carry.MaybeExecuted || ce.Sends != v.left[tok] ||
			ce.Class != nil && ce.Class != fdengine.ErrBudget && ce.Class != fdengine.ErrPoisoned {
			continue
		}
		n, at := v.last(tok)
		for _, s := range v.wires[n][at+1:] {
			if steady[s.token] == nil {
				continue
			}
			if m, _ := v.last(s.token); m > n {
				v.fail("P6: %s failed at the end of wire %d (%v), %s behind it is sent again", tok, n, r.err, s.token)
			}
		}
	}
}

// last is the place of the last send of a token.
func (v *evidence) last(token string) (n, at int) {
	for i, log := range v.wires {
		for j, s := range log {
			if s.token == token {
				n, at = i, j
			}
		}
	}
	return n, at
}

// alone is the rule about poison: after a connection died with commands in flight and without one answer, the next
// one carries one that expects a reply, and nothing behind it until that came.
func (v *evidence) alone() {
	if v.w.second != nil {
		return
	}
	for n := 0; n+1 < len(v.wires); n++ {
		c, next := v.conns[n], v.conns[n+1]
		if c.loans != 1 || c.in > handshakeReply || next.loans != 1 {
			continue
		}
		owed := false
		for _, s := range v.wires[n] {
			if r := v.w.byToken[s.token]; r != nil && r.plan.shape != noted {
				m, _ := v.last(s.token)
				owed = owed || m > n
			}
		}
		if !owed {
			continue
		}
		asks := 0
		for _, s := range v.wires[n+1] {
			r := v.w.byToken[s.token]
			if next.outAtIn > 0 && s.end > next.outAtIn {
				break
			}
			if r != nil && r.plan.shape != noted {
				if asks++; asks == 2 {
					v.fail("P5: wire %d died without an answer, and on the next one %s is not alone", n, s.token)
				}
			}
		}
	}
}

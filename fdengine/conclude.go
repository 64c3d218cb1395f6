package fdengine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

// Outcomes that come from anywhere but a reply: a cut, the sweeper, a denial, Close. They are collected and counted
// under the log's lock and told after it.

// collect returns a function that counts an outcome and keeps it in ends. Under the lock.
func (e *Engine) collect(ends *[]carry.End[entry]) func(carry.End[entry]) {
	return func(x carry.End[entry]) {
		if !x.Owner.counted() {
			return
		}
		switch x.Why {
		case carry.WhySent, carry.WhyRefused:
			x.Fate = answeredFate(x)
		}
		e.settled(x.Fate)
		*ends = append(*ends, x)
	}
}

// answeredFate is the fate of a record whose outcome is an answer: a refusal takes back no earlier send.
func answeredFate(x carry.End[entry]) carry.Fate {
	if x.Why == carry.WhyRefused && x.Fate == carry.MaybeExecuted {
		return carry.MaybeExecuted
	}
	return carry.Answered
}

// collectSent is collect for records without reply whose last byte was accepted: success.
func (e *Engine) collectSent(ends *[]carry.End[entry]) func(*carry.Record[entry]) {
	return func(r *carry.Record[entry]) {
		x := r.Sent()
		x.Fate = carry.Answered
		e.settled(x.Fate)
		*ends = append(*ends, x)
	}
}

// settleAll ends every record that match picks. Under the lock; conclude must follow.
func (e *Engine) settleAll(match func(*carry.Record[entry]) bool) []carry.End[entry] {
	var ends []carry.End[entry]
	e.log.Settle(match, carry.WhyAsked, e.collect(&ends))
	return ends
}

// conclude tells the owners. class and cause are for the records whose end was asked for; cause also stands behind
// the failures of a cut. Foreign completions run apart, so that a Goexit in one ends neither the engine goroutine
// nor the reader in the middle of its work.
func (e *Engine) conclude(ends []carry.End[entry], class, cause error) {
	e.tellAll(ends, class, cause)
	e.sampleEnds(ends, class, cause) // last: an observer may end this goroutine
}

// tellAll tells callers of Do and DoBatch first: a completion that blocks does not keep them.
func (e *Engine) tellAll(ends []carry.End[entry], class, cause error) {
	foreign := 0
	for _, x := range ends {
		if isForeign(x) {
			foreign++
		} else {
			e.tell(x, e.failure(x, class, cause))
		}
	}
	if foreign == 0 {
		return
	}
	next := 0
	tell := func() error {
		for next < len(ends) {
			x := ends[next]
			if next++; isForeign(x) {
				e.tell(x, e.failure(x, class, cause))
			}
		}
		return nil
	}
	for next < len(ends) {
		_ = panics.Isolate("Complete", tell)
	}
}

// isForeign says whether telling x runs code that is not ours.
func isForeign(x carry.End[entry]) bool {
	switch x.Owner.done.(type) {
	case *call, *member:
		return x.Why == carry.WhyRefused
	}
	return true
}

// failure is the error of one outcome; nil for a command without reply that was sent.
func (e *Engine) failure(x carry.End[entry], class, cause error) error {
	err := &CallError{Fate: x.Fate, Sends: x.Sends, Cause: cause}
	switch x.Why {
	case carry.WhySent:
		return nil
	case carry.WhyRefused:
		return e.decodeRefusal(x)
	case carry.WhyExpired:
		err.Class, err.Cause = ErrTimeout, context.DeadlineExceeded
	case carry.WhyBudget:
		err.Class = ErrBudget
	case carry.WhyPoisoned:
		err.Class = ErrPoisoned
	case carry.WhyBroken, carry.WhyStrict:
		err.Class = ErrStreamBroken
	case carry.WhyAsked:
		err.Class = class
	}
	return err
}

// decodeRefusal lets the command decode the refusal that became its answer after all.
func (e *Engine) decodeRefusal(x carry.End[entry]) error {
	var answer error
	failed := panics.Isolate("DecodeReply", func() error {
		err := x.Owner.cmd.DecodeReply(Reply{Frame: x.Frame, Sends: x.Sends, Maybe: x.Fate == carry.MaybeExecuted})
		if err != nil {
			answer = replyError(err, true, x.Fate == carry.MaybeExecuted, x.Sends) // runs methods of the error
		}
		return nil
	})
	if failed != nil {
		return &CallError{Fate: x.Fate, Sends: x.Sends, Cause: failed}
	}
	return answer
}

// tell gives one outcome to its owner. A panic or Goexit in a completion is counted; the outcome stands.
func (e *Engine) tell(x carry.End[entry], err error) {
	defer streamDone(x.Stream) // a Flush returns after the completions
	switch d := x.Owner.done.(type) {
	case *call:
		d.finish(err)
	case *member:
		d.finish(err)
	default:
		caught := func(p error) {
			e.caught.Add(1)
			e.say("caught", p)
		}
		perr := panics.Guard("Complete", func(p *panics.Error) { caught(p) }, func() error {
			d.Complete(x.Owner.cmd, err)
			return nil
		})
		if perr != nil {
			caught(perr)
		}
	}
}

// stuckAfter is how long a completion may block before Close and the sweeper let others pass it.
const stuckAfter = 100 * time.Millisecond

// detach is conclude for callers that must not wait for foreign code: Close and the sweeper. Callers of Do and
// DoBatch are told at once, completions on a goroutine of their own; one that blocks keeps its goroutine, and the
// rest is told by another.
func (e *Engine) detach(ends []carry.End[entry], class, cause error) {
	defer e.sampleEnds(ends, class, cause)
	e.tellApart(ends, class, cause)
}

// tellApart is detach without the observer.
func (e *Engine) tellApart(ends []carry.End[entry], class, cause error) {
	var foreign []carry.End[entry]
	for _, x := range ends {
		if isForeign(x) {
			foreign = append(foreign, x)
		} else {
			e.tell(x, e.failure(x, class, cause))
		}
	}
	if len(foreign) == 0 {
		return
	}
	var next atomic.Int64
	work := func() { // start runs it again after a Goexit

		for {
			i := next.Add(1) - 1
			if i >= int64(len(foreign)) {
				return
			}
			e.tell(foreign[i], e.failure(foreign[i], class, cause))
		}
	}
	e.start(work)
	e.start(func() { // relieves a worker that is stuck, until all have been started
		t := time.NewTicker(stuckAfter)
		defer t.Stop()
		for last := int64(0); next.Load() < int64(len(foreign)); {
			<-t.C
			if now := next.Load(); now == last {
				e.start(work)
			} else {
				last = now
			}
		}
	})
}

package fdengine

import (
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

// limiting pairs each allowed claim of a session with one report. Guarded by the log's lock.
type limiting struct {
	credit bool     // Allow said yes and nothing was claimed on it yet
	ends   []uint64 // Log.Published after each claim that is not reported
}

// allowed asks the limiter for the next claim. Called with the lock held; true keeps it. A denial, which a panic is
// too, fails what would have been claimed, and releases the lock.
func (s *session) allowed(room, bytes int, alone bool) bool {
	e, l := s.e, &s.e.log
	if s.limiting.credit || !l.Claimable() {
		return true
	}
	l.Unlock()
	deny := func(why error) {
		var ends []carry.End[entry]
		l.Lock()
		l.Deny(room, bytes, alone, e.collect(&ends))
		e.letIn()
		l.Unlock()
		e.conclude(ends, ErrDenied, why)
	}
	err := panics.Isolate("Allow", e.opt.Limiter.Allow)
	if err != nil {
		deny(err)
		return false
	}
	l.Lock()
	s.limiting.credit = true
	if s.dead || s.ending != reasonNone {
		l.Unlock()
		return false
	}
	return true
}

// claimed notes that the next claim is on the wire, up to the count published. Under the lock.
func (s *session) claimed(published uint64) {
	if s.e.opt.Limiter != nil {
		s.limiting.credit = false
		s.limiting.ends = append(s.limiting.ends, published)
	}
}

// report tells the limiter what became of its claims: nil for each whose replies have all arrived; at the end of the
// session cause for the others.
func (s *session) report(cause error, end bool) {
	e := s.e
	if e.opt.Limiter == nil {
		return
	}
	e.log.Lock()
	n, acked := 0, e.log.Acked()
	for n < len(s.limiting.ends) && (s.limiting.ends[n] <= acked && !end) {
		n++
	}
	left := 0
	if end {
		left = len(s.limiting.ends)
		if s.limiting.credit {
			n = 1 // allowed, and never used
		}
		s.limiting.ends, s.limiting.credit = nil, false
	} else {
		s.limiting.ends = append(s.limiting.ends[:0], s.limiting.ends[n:]...)
	}
	e.log.Unlock()
	for ; n > 0; n-- {
		e.reportOne(nil)
	}
	for ; left > 0; left-- {
		e.reportOne(cause)
	}
}

func (e *Engine) reportOne(err error) {
	perr := panics.Isolate("ReportResult", func() error { e.opt.Limiter.ReportResult(err); return nil })
	if perr != nil {
		e.caught.Add(1)
		e.say("caught", perr)
	}
}

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
	if s.limiting.credit || !l.CanClaim(room, bytes, alone) {
		return true
	}
	l.Unlock()
	deny := func(why error) {
		var ends []carry.End[entry]
		l.Lock()
		l.Deny(room, bytes, alone, e.collect(&ends))
		if s.pinging { // a denied ping is not asked for again before its time
			s.pinging, s.active = false, e.stamp()
		}
		e.letIn()
		l.Unlock()
		e.conclude(ends, ErrDenied, why)
	}
	err := panics.Guard("Allow", func(p *panics.Error) { deny(p) }, e.opt.Limiter.Allow)
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
// session cause for the others. Each is taken off the list before it is told, so that none is told twice.
func (s *session) report(cause error, end bool) {
	e := s.e
	if e.opt.Limiter == nil {
		return
	}
	for {
		e.log.Lock()
		result, ok := s.nextReport(cause, end)
		e.log.Unlock()
		if !ok {
			return
		}
		err := panics.Guard("ReportResult", func(*panics.Error) {
			e.caught.Add(1)
			e.start(func() { s.report(cause, end) })
		}, func() error { e.opt.Limiter.ReportResult(result); return nil })
		if err != nil {
			e.caught.Add(1)
			e.say("caught", err)
		}
	}
}

// nextReport takes the next report off the list. Under the lock.
func (s *session) nextReport(cause error, end bool) (result error, ok bool) {
	l := &s.limiting
	switch {
	case len(l.ends) > 0 && l.ends[0] <= s.e.log.Acked() && !end:
		result = nil
	case len(l.ends) > 0 && end:
		result = cause
	case l.credit && end:
		l.credit = false // allowed, and never used
		return nil, true
	default:
		return nil, false
	}
	l.ends = append(l.ends[:0], l.ends[1:]...)
	return result, true
}

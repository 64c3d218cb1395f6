package fdengine

import "time"

// Stats is a snapshot of an engine. The counters only rise; after quiescence Accepted = Settled + Moved,
// Settled = Answered + NotSent + Maybe, and the gauges are 0. The idle ping is not counted among the commands. A
// command whose caller left after another engine had adopted it is settled in the books of the engine of the call:
// then the first equation holds for the sum over the engines it visited.
type Stats struct {
	QueueCommands, QueueBytes       int           // accepted, not on the wire; those waiting for a backoff included
	InFlightCommands, InFlightBytes int           // on the wire, unanswered; ghosts of callers who left included
	OldestAge                       time.Duration // since the submit of the oldest in flight
	Accepted, Settled               uint64
	Answered, NotSent, Maybe        uint64 // settled, by fate
	Moved                           uint64 // adopted by another engine, which counts them as accepted
	Rejected                        uint64 // submissions that left no trace: full, vetoed, too large, not encodable
	Writes, Reads                   uint64 // chunks; Sent/Writes is commands per write
	Sent, Replies                   uint64 // records written (replays included), replies read
	Replays                         uint64 // sends repeated after a cut
	Refusals                        uint64 // sends repeated after a refusal
	Redirects                       uint64 // handed to the Rerouter
	Sessions, LeaseErrors           uint64
	Cuts, Retired                   uint64 // sessions that ended so
	Panics                          uint64 // caught in foreign code
	State                           string
}

// Stats returns a snapshot. It takes the engine's lock for a moment, and waits at most some milliseconds for the
// reader to finish the chunk at hand so that what callers have been told is in it.
func (e *Engine) Stats() Stats {
	e.quiet()
	l := &e.log
	l.Lock()
	defer l.Unlock()
	s := e.count
	s.QueueCommands, s.QueueBytes = l.Queued()
	// What a chunk has answered that foreign code keeps open is not in flight any more, as admission knows.
	held, bytes := l.Held()
	s.InFlightCommands, s.InFlightBytes = max(held-s.QueueCommands, 0), max(bytes-s.QueueBytes, 0)
	if start, ok := l.Oldest(); ok {
		s.OldestAge = max(time.Since(e.base)-time.Duration(start), 0)
	}
	s.Moved = e.moved.Load()
	s.Rejected, s.Panics = e.rejected.Load(), e.caught.Load()
	s.State = e.state.String()
	return s
}

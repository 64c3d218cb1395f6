package fdengine

import (
	"sync/atomic"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

// A reader that has woken a chain of callers (chain.go) waits for its end before it reads on. It would find little, since
// those callers are only beginning to ask again, and its thread, waiting in the poller, would draw the next chain to another
// CPU. The sweeper ends a wait for a chain that has come to a halt.
//
// Then it is the reader's turn to write. It is the next to run when the chain has ended, on the CPU where its callers ran, and
// what they submitted is what there is to write. To have the engine goroutine woken for it would be one wake more, mostly of an
// idle CPU, and whoever runs there draws the reader and the next chain along. The reader never waits in a write, since the
// server may be waiting for it to read: what the connection does not take at once is left to the engine goroutine, and so is
// everything out of the ordinary.

// worthWaiting is how many callers make a chain that the reader waits for.
const worthWaiting = 4

// turnSpans is how many spans the reader writes in a row: others may submit as fast as it writes.
const turnSpans = 32

// turnMost is how long a chain may keep the reader and what its callers submit.
const turnMost = 4 * tick

// turn is guarded by the log's lock, but for mayTake, which does not change, and what is atomic.
type turn struct {
	over     chan struct{} // cap 1: the reader may go on
	turnAt   atomic.Int64  // since when it waits for that; 0 = it does not
	relieved atomic.Bool   // it is to go on though a chain runs

	comesOn bool   // at the last tick a chain ran that had made a step since the one before
	stepped uint32 // steps then
	mayTake bool   // the reader may write on this connection
	waited  bool   // the reader waits for a chain, and is going to write
	taken   bool   // the span is the reader's to write
	rest    bool   // it has left the rest of it, from written on, to the engine goroutine
	kept    bool   // the engine goroutine waits for the reader to be done with the span
}

// awaitTurn is the reader waiting until no chain runs, or until it is relieved.
func (s *session) awaitTurn(now int64) {
	s.turnAt.Store(max(now, 1))
	s.e.log.Lock()
	s.e.rouse() // the sweeper is to look after it
	s.e.log.Unlock()
	for s.running.Load() > 0 && !s.relieved.Swap(false) {
		<-s.over
	}
	s.turnAt.Store(0)
}

// giveTurn lets the reader look whether it may go on.
func (s *session) giveTurn() {
	select {
	case s.over <- struct{}{}:
	default:
	}
}

// endWait ends the reader's wait, or its next one.
func (s *session) endWait() {
	s.relieved.Store(true)
	s.giveTurn()
}

// relieve is called by the sweeper at each tick. It ends a wait for a chain that takes a tick and does not come on, or that takes
// turnMost. Under the lock.
func (s *session) relieve(now int64) {
	at, steps := s.turnAt.Load(), s.steps.Load()
	s.comesOn = at != 0 && now-at < int64(turnMost) && steps != s.stepped
	s.stepped = steps
	if at != 0 && now-at >= int64(tick) && !s.comesOn {
		s.endWait()
	}
}

// takesTurns says whether the reader may write on c. What observers and limiters do between the parts of a write is not for
// the reader.
func (o *Options) takesTurns() bool { return o.Observer == nil && o.Limiter == nil }

// takeTurn ends a wait that began at the given time: the reader writes what waits. What panics in it is our own fault, and ends
// the session.
func (s *session) takeTurn(began int64) {
	err := panics.Catch("reader", func() error { s.writeTurn(began); return nil })
	if err != nil {
		s.e.recoverLock()
		s.lostTurn(err)
		s.e.fault(s, err)
	}
}

// writeTurn writes what waits, as far as the connection takes it.
func (s *session) writeTurn(began int64) {
	e, l := s.e, &s.e.log
	now := e.stamp()
	l.Lock()
	s.base = min(s.base+now-began, now) // the wait was not the peer's time
	surplus := false
	if inFlight, _ := l.InFlight(); s.waited && inFlight == 0 {
		// What the server says now answers nothing that is yet to be sent: it is to be read before anything is written.
		l.Unlock()
		surplus, _ = s.conn.Readable()
		l.Lock()
	}
	mine := s.waited && !surplus
	s.waited = false
	for n := 0; mine && n < turnSpans; n++ {
		span, ok := s.claimTurn()
		if !ok {
			break
		}
		l.Unlock()
		s.sendTurn(span)
		l.Lock()
	}
	waits, _ := l.Queued()
	wake := waits > 0 && !s.taken && !surplus && e.parked && e.due() && e.unpark()
	l.Unlock()
	if wake {
		e.signal()
	}
}

// claimTurn claims for the reader what the engine goroutine would, if it is parked and would do nothing else. Under the
// lock.
func (s *session) claimTurn() (span carry.Span[entry], ok bool) {
	e, l := s.e, &s.e.log
	if !e.parked || s.dead || s.standing || s.inline || s.taken || s.ending != reasonNone || len(e.rerouting) > 0 ||
		s.alone && s.answers == 0 || !e.due() || s.wantsEnd(e.clock.Load()) != reasonNone {
		return span, false
	}
	if due, ok := l.NextDue(); ok && due <= e.clock.Load() {
		return span, false
	}
	inFlight, flying := l.InFlight()
	if inFlight >= e.opt.Window || l.Quieter() { // who sends without a reply is told in order, by one goroutine
		return span, false
	}
	if span, ok = l.Claim(e.opt.Window-inFlight, e.opt.WindowBytes-flying, false); ok {
		s.force, s.taken = false, true
		s.begin(span, inFlight)
	}
	if !ok || e.room.first != nil { // dead records were dropped on the way
		e.letIn()
	}
	return span, ok
}

// sendTurn writes what the connection takes of the span.
func (s *session) sendTurn(span carry.Span[entry]) {
	e, l := s.e, &s.e.log
	n, err := 0, error(nil)
	if !s.cutFlag.Load() {
		var fell error
		if n, err, fell = s.tryWrite(&span); fell != nil {
			e.caught.Add(1)
			s.lostTurn(fell)
			return
		}
	}
	if err == nil && n < span.Size && !s.cutFlag.Load() {
		now := e.stamp()
		l.Lock()
		s.rest, s.written = true, n
		s.passes(&span, n, now)
		e.count.Writes++
		e.unpark()
		l.Unlock()
		e.signal()
		return
	}
	s.conclude(s.sent(span, n, err))
}

// tryWrite is conn.TryWrite behind a border: the connection may be anybody's.
func (s *session) tryWrite(span *carry.Span[entry]) (n int, err, fell error) {
	exit := func(p *panics.Error) {
		s.e.caught.Add(1)
		s.lostTurn(p)
	}
	fell = panics.Guard("conn.TryWrite", exit, func() error {
		if span.Split() {
			s.parts = span.Parts(s.parts[:0], 0)
			defer clear(s.parts)
			n, err = s.conn.TryWriteParts(s.parts)
			return nil
		}
		for b := span.Bytes; n < len(b) && err == nil && !s.cutFlag.Load(); {
			piece := b[n:min(n+pieceMax, len(b))]
			var m int
			m, err = s.conn.TryWrite(piece)
			if n += m; m < len(piece) {
				break
			}
		}
		return nil
	})
	return n, err, fell
}

// lostTurn ends the session over a write that failed in foreign code: nobody knows what of it left.
func (s *session) lostTurn(why error) {
	s.e.log.Lock()
	if s.taken && !s.rest {
		s.taken, s.writing, s.written, s.assumed = false, false, s.span.Size, true
	}
	s.e.log.Unlock()
	s.cut(why)
}

package fdengine

import (
	"errors"
	"net"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

const pieceMax = 256 << 10 // one write(2)

// serve writes on the engine goroutine until the session ends, and says how: reasonCut, or a clean end with nothing
// in flight.
func (s *session) serve() reason {
	why := reasonCut
	err := panics.Catch("writer", func() error {
		why = s.writeLoop()
		return nil
	})
	if err != nil {
		s.e.recoverLock()
		s.unsure(false)
		s.e.fault(s, err)
		return reasonCut
	}
	return why
}

// unsure notes that a write ended in foreign code that failed: nobody knows what of it left.
// byCaller: the write of a lone caller, else that of the engine goroutine.
func (s *session) unsure(byCaller bool) {
	s.e.log.Lock()
	defer s.e.log.Unlock()
	if s.writing && !s.taken && s.inline == byCaller {
		s.written, s.assumed = s.span.Size, true
	}
}

// begin notes that span is being written. inFlight is what was on the wire before. Under the lock.
func (s *session) begin(span carry.Span[entry], inFlight int) {
	s.span, s.written, s.passed, s.writing = span, 0, 0, true
	s.pingSpan = s.pinging
	if inFlight == 0 {
		s.base = max(s.base, s.e.clock.Load())
	}
	s.claimed(s.e.log.Published())
}

func (s *session) writeLoop() reason {
	e, l := s.e, &s.e.log
	var y yielding
	for {
		l.Lock()
		e.parked = false
		if s.dead {
			l.Unlock()
			return reasonCut
		}
		if len(e.rerouting) > 0 {
			l.Unlock()
			e.reroute()
			continue
		}
		if s.rest {
			s.taken, s.rest = false, false
			span, from := s.span, s.written
			l.Unlock()
			s.send(span, from)
			continue
		}
		if s.taken {
			s.kept = true
			e.await(false)
			continue
		}
		now := e.clock.Load()
		if s.ending == reasonNone {
			if s.ending = s.wantsEnd(now); s.ending != reasonNone {
				s.endAt = e.stamp()
				e.setState(stateEnding)
			}
		}
		inFlight, flying := l.InFlight()
		if s.ending != reasonNone {
			if s.endNext == reasonRetire {
				s.ending = reasonRetire // what was read while draining says that it must not be put back
			}
			if inFlight == 0 {
				l.Unlock()
				return s.ending
			}
			e.await(true)
			continue
		}
		if due, ok := l.NextDue(); ok && due <= now {
			l.Due(now)
		}
		if s.inline {
			e.await(true)
			continue
		}
		alone := s.alone && s.answers == 0
		room := e.opt.Window - inFlight
		if alone && inFlight > 0 {
			room = 0
		}
		waits, bytes := l.Queued()
		if room <= 0 || waits == 0 {
			e.await(waits > 0)
			continue
		}
		if s.awaitsReader(bytes) {
			e.await(true)
			continue
		}
		if y.before(waits, bytes, waits+inFlight, e.count.Accepted) {
			l.Unlock()
			y.yield(e)
			continue
		}
		if !e.due() {
			e.await(true)
			continue
		}
		s.force, y.held = false, waits+inFlight
		if e.opt.Limiter != nil && !s.allowed(room, e.opt.WindowBytes-flying, alone) {
			continue // the lock is released
		}
		span, ok := l.Claim(room, e.opt.WindowBytes-flying, alone)
		if !ok {
			e.letIn() // dead records were dropped on the way
			e.await(inFlight > 0)
			continue
		}
		s.begin(span, inFlight)
		s.recall() // somebody must read the replies
		if e.room.first != nil {
			e.letIn()
		}
		l.Unlock()
		s.send(span, 0)
	}
}

// await parks the engine goroutine until it is signalled. ack: any progress of the reader is a reason. Called with
// the lock held, returns without.
func (e *Engine) await(ack bool) {
	e.parked, e.wantAck = true, ack
	e.log.Unlock()
	<-e.wake
}

// send writes one span, from the given byte on, and tells how far it came.
func (s *session) send(span carry.Span[entry], from int) {
	n, err := from, error(nil)
	if !s.cutFlag.Load() {
		n, err = s.write(&span, from)
	}
	s.e.conclude(s.sent(span, n, err), nil, nil)
	if s.e.opt.Observer != nil {
		s.e.observe(Event{Kind: EventWrote, Commands: span.Commands, Bytes: n, Addr: s.addr})
	}
}

// sent notes how far a write came, and returns what has ended by it.
func (s *session) sent(span carry.Span[entry], n int, err error) (ends []carry.End[entry]) {
	e, l := s.e, &s.e.log
	sure := n
	if err != nil && !s.conn.ExactWrite() {
		n, sure = span.Size, 0 // it cannot say: the cautious answer for each question
	}
	now := e.stamp()
	l.Lock()
	s.probeFrom(l.Published(), now)
	wake := s.inline
	if wake && !s.helped {
		s.byCaller, s.served = true, false // it reads as well
	}
	s.writing, s.inline, s.taken, s.written, s.assumed = false, false, false, n, sure != n
	s.active = now
	if !s.pingSpan { // the reply to a ping may have been seen before its write has returned
		s.useful = now
	}
	e.count.Writes++
	e.count.Sent += uint64(span.Commands)
	s.passes(&span, span.Size, now)
	l.Quiet(span, sure, e.collectSent(&ends))
	l.Written()
	if len(ends) > 0 {
		e.letIn()
	}
	if waits, _ := l.Queued(); wake {
		wake = waits > 0 && e.due() && e.unpark()
	}
	if s.kept {
		s.kept = false
		wake = e.unpark() || wake
	}
	l.Unlock()
	if wake {
		e.signal()
	}
	if err != nil {
		s.cut(err)
	}
	return ends
}

// write writes span from byte from on, in pieces, and returns how much of span is written then. The sweeper watches the time of each: when a piece is
// late it pulls the write deadline, and the write that returns says whether a byte was accepted since. If so, the peer is slow but alive.
func (s *session) write(span *carry.Span[entry], from int) (n int, err error) {
	defer s.writeAt.Store(0)
	for n = from; n < span.Size; {
		s.writeAt.Store(s.e.clock.Load() + 1)
		m, err := s.writePiece(span, n)
		n += m
		if err == nil {
			s.unpoke()
			s.progress(span, n)
			continue
		}
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() && s.unpoke() && m > 0 && s.conn.ExactWrite() && !s.cutFlag.Load() {
			s.e.stamp()
			s.progress(span, n)
			continue
		}
		if errors.As(err, &ne) && ne.Timeout() {
			err = errWriteTimeout
		}
		return n, err
	}
	return n, nil
}

// writePiece writes some of span from byte n on: all that the connection takes at once of several parts, else the rest of one.
func (s *session) writePiece(span *carry.Span[entry], n int) (int, error) {
	if span.Split() && s.conn.CanTryWrite() {
		s.parts = span.Parts(s.parts[:0], n)
		defer clear(s.parts)
		if m, err := s.conn.TryWriteParts(s.parts); m > 0 || err != nil {
			return m, err
		}
	}
	b := span.Part(n)
	return s.conn.Write(b[:min(pieceMax, len(b))])
}

// progress notes, in the middle of a write, how much of span has left.
func (s *session) progress(span *carry.Span[entry], n int) {
	if n == span.Size { // the end of the write says so
		return
	}
	now := s.e.stamp()
	s.e.log.Lock()
	s.passes(span, n, now)
	s.e.log.Unlock()
}

// passes notes that n bytes of span have left. If the oldest record in flight is among them now, ReadTimeout counts from now on; what leaves
// later is no progress of its reply. Under the lock.
func (s *session) passes(span *carry.Span[entry], n int, now int64) {
	l := &s.e.log
	if l.Reaches(*span) && !l.Left(span, s.passed) && l.Left(span, n) {
		s.base = max(s.base, now)
	}
	s.passed = n
}

// unpoke takes back a pulled write deadline; true when there was one.
func (s *session) unpoke() bool {
	if s.writeAt.Swap(0) >= 0 {
		return false
	}
	s.poke.Lock()
	defer s.poke.Unlock()
	was := s.poke.on
	if s.poke.on = false; was {
		_ = s.conn.SetWriteDeadline(time.Time{})
	}
	return was
}

// pokeWrite pulls the write deadline of the piece that was started at the given time, if it is still being written.
func (s *session) pokeWrite(at int64) {
	s.poke.Lock()
	defer s.poke.Unlock()
	if s.writeAt.CompareAndSwap(at, -1) {
		s.poke.on = true
		_ = s.conn.SetWriteDeadline(time.Unix(1, 0))
	}
}

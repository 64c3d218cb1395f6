package fdengine

import (
	"errors"
	"net"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

const (
	pieceMax  = 256 << 10 // one write(2)
	pieceSafe = 16 << 10  // one Write of a connection that cannot say how far one that fails has come: a record of TLS (RFC 8446, 5.1)
)

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

// write writes span from byte from on, in pieces, and returns how much of span is written then. The sweeper watches the time of each: when a
// piece is late, or to know what has left, it pulls the write deadline, and the write that returns says whether a byte was accepted
// since. If so, the peer is slow but alive.
func (s *session) write(span *carry.Span[entry], from int) (n int, err error) {
	defer s.writeAt.Store(0)
	at := s.e.clock.Load()
	for n = from; n < span.Size; {
		s.writeAt.Store(at + 1)
		m, err := s.writePiece(span, n)
		n += m
		poked := s.unpoke()
		if err != nil {
			var ne net.Error
			if !errors.As(err, &ne) || !ne.Timeout() {
				return n, err
			}
			goesOn := poked == pokeLook || poked == pokeLate && m > 0
			if !goesOn || !s.conn.ExactWrite() || s.cutFlag.Load() {
				return n, errWriteTimeout
			}
		}
		if m > 0 {
			at = s.progress(span, n)
		}
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
	b, most := span.Part(n), pieceMax
	if !s.conn.ExactWrite() {
		most = pieceSafe
	}
	return s.conn.Write(b[:min(most, len(b))])
}

// progress notes how much of span has left, and returns the time; when all has, the end of the write does.
func (s *session) progress(span *carry.Span[entry], n int) (now int64) {
	if n == span.Size {
		return 0
	}
	now = s.e.stamp()
	s.e.log.Lock()
	s.passes(span, n, now)
	s.e.log.Unlock()
	return now
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

// poking is why the deadline of a write was pulled.
type poking uint8

const (
	pokeNone poking = iota
	pokeLate        // no byte for WriteTimeout: one that has accepted none since then is over
	pokeLook        // to know how much has left
)

// unpoke takes back a pulled write deadline, and says why it was pulled.
func (s *session) unpoke() poking {
	if s.writeAt.Swap(0) >= 0 {
		return pokeNone
	}
	s.poke.Lock()
	defer s.poke.Unlock()
	was := s.poke.why
	if s.poke.why = pokeNone; was != pokeNone {
		_ = s.conn.SetWriteDeadline(time.Time{})
	}
	return was
}

// pokeWrite pulls the write deadline of the piece that was started at the given time, if it is still being written.
func (s *session) pokeWrite(at int64, why poking) {
	if !s.pull(at, why) && why == pokeLate {
		s.cut(errWriteTimeout)
	}
}

// pull is false when the connection has no deadline to pull; then the piece is as it was.
func (s *session) pull(at int64, why poking) bool {
	s.poke.Lock()
	defer s.poke.Unlock()
	if !s.writeAt.CompareAndSwap(at, -1) {
		return true // it is over
	}
	s.poke.why = why
	if s.conn.SetWriteDeadline(time.Unix(1, 0)) == nil {
		return true
	}
	s.poke.why = pokeNone
	return !s.writeAt.CompareAndSwap(-1, at)
}

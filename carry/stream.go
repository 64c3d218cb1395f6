package carry

import "sync/atomic"

// Stream is an ordered series of records: nothing of it is executed after a gap. It belongs to one log, whose
// lock guards it.
//
//	open    -> held      one record was refused; nothing of the stream is published until the answers of those
//	                     behind it are in
//	held    -> open      all of them were refused too: all go again, in order
//	held    -> broken    one of them was executed
//	open    -> broken    a record failed
//	broken  -> open      Reset
type Stream[T any] struct {
	Owner   any    // free for the engine
	gen     uint32 // rises with each break
	at      uint64 // sequence number of the record that broke it; later ones of an older generation fail
	broken  bool
	torn    bool        // held, and one of those in flight behind the refused ones failed
	held    atomic.Bool // written under the lock
	due     bool        // held, all answers in, waiting for the backoff
	after   int64       // held: not before
	turn    uint32      // counts the holds
	flying  int         // held: later records in flight whose answer is still out
	refused []Away[T]
	queued  []Away[T] // held back behind them
}

// Broken says whether a record of s failed since the last Reset.
func (s *Stream[T]) Broken() bool { return s.broken }

// Held says whether s waits for the answers behind a refusal, or for its backoff. Also without the lock.
func (s *Stream[T]) Held() bool { return s.held.Load() }

// Reset makes a broken stream usable again. All records that were under way when it broke have been settled.
func (s *Stream[T]) Reset() { s.broken = false }

func (s *Stream[T]) waiting() int { return len(s.refused) + len(s.queued) }

// broke marks the failure of r, a record in the chain. It reports whether later ones have to fail for it. A stream
// that is broken already breaks again when the failure is before that break.
func (r *Record[T]) broke() bool {
	s := r.Stream
	if s == nil || r.orphaned() {
		return false
	}
	s.fail(r.seq)
	s.torn = s.held.Load()
	return true
}

// fail breaks s behind the record with that sequence number.
func (s *Stream[T]) fail(seq uint64) {
	s.broken, s.at = true, seq
	s.gen++
}

// gap says whether something is missing in front of the records in flight behind the refused ones: a refused one
// that still waits, or one whose caller left although it may have run. Those that provably never ran and were
// withdrawn leave none.
func (s *Stream[T]) gap() bool {
	for i := range s.refused {
		if r := &s.refused[i].Rec; r.state() == away || r.lost() {
			return true
		}
	}
	return false
}

// lost says of a record that is not on the wire that its caller left, so that it will never be sent again, and that
// it may have run.
func (r *Record[T]) lost() bool { return r.maybe && r.state() == abandoned }

// orphaned says whether r has to fail because an earlier record of its stream did.
func (r *Record[T]) orphaned() bool {
	s := r.Stream
	return s != nil && s.gen != r.gen && r.seq > s.at
}

// Refuse takes the record r, which the reader has decided and whose reply was a refusal, out of the chunk, to be
// sent again not before due. frame is a copy of the refusal. When the caller has left meanwhile, left is true and
// the record is gone. When ok is false the refusal is the answer after all: the stream of r broke, or something
// behind r in it needs no answer and so has run; f is told what that ends.
func (l *Log[T]) Refuse(r *Record[T], enc, frame []byte, due int64, f func(End[T])) (ok, left bool) {
	s := r.Stream
	if r.orphaned() {
		return false, false
	}
	if s != nil && !s.held.Load() && !l.hold(s, r) {
		r.broke()
		l.failLater(s, f)
		return false, false
	}
	lost, seq := r.maybe, r.seq
	w, ok := l.depart(r, deciding, append([]byte(nil), enc...))
	w.frame = frame
	if s == nil {
		if ok {
			l.wait(w, due)
		}
		return true, !ok
	}
	switch {
	case ok:
		s.refused = append(s.refused, w)
	case lost:
		s.fail(seq)
		l.breakHeld(s, f)
		return true, true
	}
	l.landed(s, due)
	return true, !ok
}

// GhostRefused tells a held stream that a ghost of it was refused too.
func (l *Log[T]) GhostRefused(r *Record[T], due int64) {
	if s := r.Stream; s != nil && s.held.Load() && !s.due {
		l.landed(s, due)
	}
}

// Executed tells a held stream that a record of it behind the refusal was answered, which breaks it, unless the
// callers of all that were refused have left.
func (l *Log[T]) Executed(r *Record[T], f func(End[T])) {
	switch s := r.Stream; {
	case s == nil || !s.held.Load() || s.due:
	case s.gap():
		l.breakHeld(s, f)
	default:
		l.landed(s, 0)
	}
}

// Break fails the stream of r behind it: r ends as an answer that leaves a gap.
func (l *Log[T]) Break(r *Record[T], f func(End[T])) {
	if !r.broke() {
		return
	}
	if s := r.Stream; s.torn {
		l.breakHeld(s, f)
	} else {
		l.failLater(s, f)
	}
}

// Held says whether r belongs to a held stream. For the reader, without the lock: only it starts a hold, and it
// asks the log again, under the lock, before it acts.
func (r *Record[T]) Held() bool { return r.Stream != nil && r.Stream.held.Load() }

// hold stops s behind first: it counts its records in flight behind first, ghosts included, and takes the queued
// ones out of the chain. False: one of those in flight gets no answer, so that it must be taken as executed.
func (l *Log[T]) hold(s *Stream[T], first *Record[T]) bool {
	flying, quiet, behind := 0, false, false
	l.each(func(_ *block[T], r *Record[T], published bool) bool {
		if r == first {
			behind = true
		} else if behind && published && r.Stream == s {
			flying++
			quiet = quiet || r.Frames == 0
		}
		return published
	})
	if quiet {
		return false
	}
	s.held.Store(true)
	s.after = 0
	s.due, s.flying = false, flying+1 // and first itself, landed at once
	s.turn++
	l.holding = append(l.holding, s)
	l.extractQueued(s)
	return true
}

// extractQueued moves the records of s that are not published from the chain to the end of s.queued. What is left of them
// in the chain goes at once, however little it is: they count where they are now.
func (l *Log[T]) extractQueued(s *Stream[T]) {
	l.each(func(b *block[T], r *Record[T], published bool) bool {
		if published || r.Stream != s || !r.live() {
			return true
		}
		if w, ok := l.depart(r, pending, append([]byte(nil), b.bytes(r)...)); ok {
			s.queued = append(s.queued, w)
			b.dead++
		}
		return true
	})
	from := l.pub
	for b := l.cur; b != nil; from = 0 {
		next := b.next
		if b.dead > 0 {
			l.clean(b, from)
		}
		b = next
	}
}

// landed counts one answer of those s waits for; with the last one, all go again at due.
func (l *Log[T]) landed(s *Stream[T], due int64) {
	s.flying--
	s.after = max(s.after, due) // the longest word counts
	if s.flying == 0 {
		s.due = true
		l.wait(Away[T]{stream: s, turn: s.turn}, s.after)
	}
}

// breakHeld ends a hold by failure: the refused ones settle with their refusals, the rest fails.
func (l *Log[T]) breakHeld(s *Stream[T], f func(End[T])) {
	if len(s.refused) > 0 {
		s.fail(s.refused[0].Rec.seq)
	}
	l.unhold(s, func(w *Away[T], refused bool) {
		why := WhyBroken
		if refused {
			why = WhyRefused
		}
		l.endAway(w, why, f)
	})
	l.failLater(s, f)
}

// unhold empties s; f sees each record it held, which is no longer counted.
func (l *Log[T]) unhold(s *Stream[T], f func(w *Away[T], refused bool)) {
	refused, queued := s.refused, s.queued
	s.refused, s.queued, s.torn, s.due, s.flying = nil, nil, false, false, 0
	s.held.Store(false)
	for i, h := range l.holding {
		if h == s {
			l.holding = append(l.holding[:i], l.holding[i+1:]...)
			break
		}
	}
	for i := range refused {
		l.discount(&refused[i])
		f(&refused[i], true)
	}
	for i := range queued {
		l.discount(&queued[i])
		f(&queued[i], false)
	}
}

// failLater settles the records of a broken stream that are still in the chain behind the failure.
func (l *Log[T]) failLater(s *Stream[T], f func(End[T])) {
	l.each(func(b *block[T], r *Record[T], published bool) bool {
		if r.Stream != s || !r.orphaned() || !r.claim() {
			return true
		}
		if !published {
			b.dead++
		}
		f(r.end(WhyBroken, published))
		return true
	})
	l.sweepDead()
}

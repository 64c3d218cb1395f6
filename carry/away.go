package carry

import "sync/atomic"

// Away is a record that has left the chain, with its bytes: it waits for a backoff, or goes to another log. It is
// owned by whoever holds it; only its state word is shared with the caller.
type Away[T any] struct {
	Rec    Record[T]
	Enc    []byte
	frame  []byte // the refusal that sent it away
	due    int64
	order  uint64
	stream *Stream[T] // no record but a whole stream that was held
	turn   uint32
}

// depart copies r out of the chain, moving its word from from to away, and counts the copy. What stays behind is
// dead: it has no owner and no ticket. False: the caller left; nobody but the reader knows of r any more.
func (l *Log[T]) depart(r *Record[T], from uint32, enc []byte) (Away[T], bool) {
	w := Away[T]{Rec: *r, Enc: enc}
	ok := true
	if t := r.ticket; t != nil {
		t.blk = nil
		if ok = atomic.CompareAndSwapUint32(&t.word, from, r.awayWord()); !ok {
			atomic.StoreUint32(&t.word, settled)
		}
	}
	w.Rec.own = r.awayWord()
	var none T
	r.Owner, r.ticket = none, nil
	atomic.StoreUint32(&r.own, settled)
	if ok {
		l.cmds++
		l.bytes += int(r.size)
	}
	return w, ok
}

// discount takes a record that was away off the books: it comes back into the chain, goes elsewhere, or ended.
func (l *Log[T]) discount(w *Away[T]) {
	l.cmds--
	l.bytes -= int(w.Rec.size)
}

// end settles w with the outcome why, unless its caller left.
func (w *Away[T]) end(why Why) (End[T], bool) {
	if !w.Rec.comeBack(settled) {
		return End[T]{}, false
	}
	e := w.Rec.end(why, false)
	e.Frame, e.Skip = w.frame, int(w.Rec.Skip)
	return e, true
}

// End settles a record that is away, in the hands of the caller; false when it was settled before.
func (w *Away[T]) End() (End[T], bool) { return w.end(WhyAsked) }

func (l *Log[T]) endAway(w *Away[T], why Why, f func(End[T])) {
	if e, ok := w.end(why); ok {
		f(e)
	}
}

// Redirect notes that w was refused with a redirect: the old one-shot prefix goes, a new one may come, with the
// number of replies it adds.
func (w *Away[T]) Redirect(prefix []byte, frames int) {
	r := &w.Rec
	w.Enc = w.Enc[r.prefix:]
	r.Frames -= uint16(r.prefixed)
	r.Skip -= uint16(r.prefixed)
	r.prefix, r.prefixed = uint16(len(prefix)), uint8(frames)
	r.Frames += uint16(frames)
	r.Skip += uint16(frames)
	if len(prefix) > 0 {
		w.Enc = append(append(make([]byte, 0, len(prefix)+len(w.Enc)), prefix...), w.Enc...)
	}
	r.size = uint32(len(w.Enc))
	if r.hops < 255 {
		r.hops++
	}
}

// wait puts w among those that wait for their time.
func (l *Log[T]) wait(w Away[T], due int64) {
	l.seq++
	w.due, w.order = due, l.seq
	l.push(w)
}

// push puts w into the heap.
func (l *Log[T]) push(w Away[T]) {
	l.waiting = append(l.waiting, w)
	h := l.waiting
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !before(&h[i], &h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func before[T any](a, b *Away[T]) bool {
	return a.due < b.due || a.due == b.due && a.order < b.order
}

// next removes the first of the heap.
func (l *Log[T]) next() Away[T] {
	h := l.waiting
	w := h[0]
	n := len(h) - 1
	h[0], h[n] = h[n], Away[T]{}
	l.waiting = h[:n]
	for i := 0; ; {
		least := i
		for _, kid := range [2]int{2*i + 1, 2*i + 2} {
			if kid < n && before(&h[kid], &h[least]) {
				least = kid
			}
		}
		if least == i {
			return w
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// NextDue is when the first of those away wants to come back. False: none waits.
func (l *Log[T]) NextDue() (int64, bool) {
	if len(l.waiting) == 0 {
		return 0, false
	}
	return l.waiting[0].due, true
}

// Due brings those back whose time has come: they are written next, before anything unsent. It returns how many.
func (l *Log[T]) Due(now int64) int {
	var ws []Away[T]
	for len(l.waiting) > 0 && l.waiting[0].due <= now {
		w := l.next()
		switch s := w.stream; {
		case s == nil:
			l.discount(&w)
			ws = append(ws, w)
		case s.held.Load() && s.due && s.turn == w.turn:
			if s.lost() {
				l.failHeld(s, func(*Record[T]) bool { return false }, WhyBroken, l.keep)
			}
			l.unhold(s, func(w *Away[T], _ bool) { ws = append(ws, *w) })
		}
	}
	return l.Splice(ws)
}

// settleAway is Settle for those away.
func (l *Log[T]) settleAway(match func(*Record[T]) bool, why Why, f func(End[T])) {
	all := l.waiting
	l.waiting = all[:0] // pushing back in place: the heap never overtakes the reading position
	for i := range all {
		w := all[i]
		switch {
		case w.stream != nil:
			l.push(w)
		case w.Rec.state() != away:
			l.discount(&w)
		case match(&w.Rec):
			l.discount(&w)
			l.endAway(&w, why, f)
		default:
			l.push(w)
		}
	}
	clear(all[len(l.waiting):])
	for i := len(l.holding) - 1; i >= 0; i-- {
		s := l.holding[i]
		if s.torn {
			l.breakHeld(s, f)
			continue
		}
		hit := s.lost()
		for _, ws := range [2][]Away[T]{s.refused, s.queued} {
			for j := range ws {
				hit = hit || ws[j].Rec.state() == away && match(&ws[j].Rec)
			}
		}
		if hit {
			l.failHeld(s, match, why, f)
		}
	}
}

// Forget drops what the held streams keep of records that ended. It is for the end of the log: while it lives they go
// when their stream is let go.
func (l *Log[T]) Forget() {
	prune := func(ws []Away[T]) []Away[T] {
		keep := ws[:0]
		for i := range ws {
			if w := &ws[i]; w.Rec.state() == away {
				keep = append(keep, *w)
			} else {
				l.discount(w)
			}
		}
		clear(ws[len(keep):])
		return keep
	}
	for _, s := range l.holding {
		s.refused, s.queued = prune(s.refused), prune(s.queued)
	}
}

// lost says whether one of those that s holds is lost.
func (s *Stream[T]) lost() bool {
	for _, ws := range [2][]Away[T]{s.refused, s.queued} {
		for i := range ws {
			if ws[i].Rec.lost() {
				return true
			}
		}
	}
	return false
}

// failHeld fails the first record of a held stream that match picks or that is lost, and what is behind it. Those
// before it stay.
func (l *Log[T]) failHeld(s *Stream[T], match func(*Record[T]) bool, why Why, f func(End[T])) {
	failed := false
	prune := func(ws []Away[T]) []Away[T] {
		keep := ws[:0]
		for i := range ws {
			w := &ws[i]
			hit := w.Rec.lost() || w.Rec.state() == away && match(&w.Rec)
			if !failed && !hit {
				keep = append(keep, *w)
				continue
			}
			l.discount(w)
			if failed {
				l.endAway(w, WhyBroken, f)
				continue
			}
			failed = true
			s.fail(w.Rec.seq)
			l.endAway(w, why, f)
		}
		clear(ws[len(keep):])
		return keep
	}
	s.refused = prune(s.refused)
	s.queued = prune(s.queued)
	l.failLater(s, f)
}

// pendingAway is Pending for those away.
func (l *Log[T]) pendingAway(f func(*Record[T]) bool) {
	for i := range l.waiting {
		w := &l.waiting[i]
		if w.stream == nil && w.Rec.state() == away && !f(&w.Rec) {
			return
		}
	}
	for _, s := range l.holding {
		for _, ws := range [2][]Away[T]{s.refused, s.queued} {
			for j := range ws {
				if ws[j].Rec.state() == away && !f(&ws[j].Rec) {
					return
				}
			}
		}
	}
}

// Leave takes a record that the reader has decided out of this log for good, to go to another one. False: its
// caller left.
func (l *Log[T]) Leave(r *Record[T], enc []byte) (Away[T], bool) {
	w, ok := l.depart(r, deciding, append([]byte(nil), enc...))
	if ok {
		l.discount(&w)
	}
	return w, ok
}

// Evict takes every live record that is not published out of this log, in order, those waiting for a backoff
// first. Records of a Stream stay: their order is kept by one log.
func (l *Log[T]) Evict() []Away[T] {
	var ws, stay []Away[T]
	for len(l.waiting) > 0 {
		w := l.next()
		if w.stream != nil {
			stay = append(stay, w)
			continue
		}
		l.discount(&w)
		ws = append(ws, w)
	}
	for i := range stay {
		l.push(stay[i])
	}
	l.each(func(b *block[T], r *Record[T], published bool) bool {
		if published || r.Stream != nil || !r.live() {
			return true
		}
		if w, ok := l.depart(r, pending, append([]byte(nil), b.bytes(r)...)); ok {
			l.discount(&w)
			ws = append(ws, w)
			b.dead++
		}
		return true
	})
	l.sweepDead()
	return ws
}

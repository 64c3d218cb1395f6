package carry

import (
	"maps"
	"slices"
)

func (w *world) withdraw() {
	if len(w.tickets) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(w.tickets))
	e := w.all[ids[w.t.n(len(ids))]]
	got, want := seen(w.tickets[e.id].Withdraw()), w.m.withdraw(e)
	if got.Won != want.Won || got.Fate != want.Fate || got.Sends != want.Sends {
		w.failf("withdrawing %d gave %+v, want %+v", e.id, got, want)
	}
	if got.Won {
		delete(w.tickets, e.id)
		w.got[e.id] = outcome{"withdrawn", got.Fate, got.Sends}
		w.m.out[e.id] = w.got[e.id]
	}
	if got.Broke {
		w.l.Settle(func(*Record[int]) bool { return false }, WhyBroken, w.collect)
		w.m.prune()
	}
}

// prune drops what was lost while away, as the log does when it is told.
func (m *model) prune() {
	for _, s := range m.series {
		for _, e := range slices.Concat(s.refused, s.parked) {
			if e.lost() {
				m.breakAt(s, e.id)
				gone := func(x *entry) bool { return x == e }
				s.refused, s.parked = slices.DeleteFunc(s.refused, gone), slices.DeleteFunc(s.parked, gone)
			}
		}
	}
}

func (w *world) expire() {
	now := w.now
	w.l.Settle(func(r *Record[int]) bool { return r.SettleBy != 0 && r.SettleBy <= now }, WhyExpired, w.collect)
	w.m.settle(func(e *entry) bool { return e.by != 0 && e.by <= now }, "expired")
}

func (w *world) cut() {
	w.endChunk()
	d := Death[int]{Now: w.now, Strict: w.t.n(8) == 0, Alone: w.t.n(6) == 0, Mute: w.t.n(2) == 0, Torn: int64(w.t.n(3))}
	if w.writing {
		exact := w.t.n(3) > 0
		if !exact && w.wrote > 0 { // cannot tell: all of it counts
			w.wrote = w.span.Size
			for _, e := range w.in {
				if !e.written {
					e.written = true
					e.ranOnce++
				}
			}
		}
		d.Last, d.Written = w.span, w.wrote
		at := 0
		for _, e := range w.in {
			e.begun = at < w.wrote
			at += len(e.enc)
		}
	}
	repeats, left := w.l.Cut(d, w.collect)
	wantRepeats, wantLeft := w.m.cut(w.now, d.Strict, d.Alone, d.Mute, d.Torn)
	if repeats != wantRepeats || left != wantLeft {
		w.failf("the cut repeats %d and left is %v, want %d and %v", repeats, left, wantRepeats, wantLeft)
	}
	w.writing, w.in, w.answers = false, nil, 0
	if w.t.n(5) == 0 {
		w.evict()
	}
}

// evict takes out all that may go to another engine, lets some end there and brings the rest back.
func (w *world) evict() {
	ws := w.l.Evict()
	m := &w.m
	m.sweep()
	held := 0
	for _, s := range m.series {
		held += len(s.refused) + len(s.parked)
	}
	if n := w.l.Waiting(); n != held {
		w.failf("%d wait after Evict, want the %d of held streams", n, held)
	}
	for _, e := range slices.Concat(m.queue, m.again, m.resting) {
		if e.s == nil {
			m.unqueue(e)
			m.comeBack(e)
		}
	}
	slices.SortFunc(m.again, func(a, b *entry) int { return a.id - b.id })
	var back []Away[int]
	for i := range ws {
		a := &ws[i]
		e := w.all[int(a.Rec.Route)]
		if e.s != nil {
			w.failf("%d left its stream's log", e.id)
		}
		if w.t.n(8) == 0 {
			if end, ok := a.End(); ok != e.live {
				w.failf("ending %d away: %v", e.id, ok)
			} else if ok {
				w.collect(end)
				m.finish(e, "asked")
			}
			continue
		}
		if e.frames > 0 && w.t.n(4) == 0 {
			e.enc = e.enc[e.prefix:]
			var prefix []byte
			if w.t.n(2) == 0 {
				prefix = []byte{255, 255, 255, 255, 0, 0, 0, 0}
			}
			a.Redirect(prefix, len(prefix)/8)
			e.prefix, e.enc = len(prefix), append(prefix, e.enc...)
		}
		back = append(back, *a)
	}
	w.l.Splice(back)
}

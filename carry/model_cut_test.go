package carry

import "slices"

// cut is the table of DESIGN section 6 over the model.
func (m *model) cut(now int64, strictOrder, alone, mute bool, patience int64) (repeats int, left bool) {
	m.sweep()
	flight := m.flight
	m.flight = nil
	strict := false
	brokeAt := map[*series]int{}
	torn := map[*series]bool{}
	broke := func(e *entry) {
		if e.s == nil || e.behind() {
			return
		}
		if at, ok := brokeAt[e.s]; ok && at < e.id {
			return
		}
		brokeAt[e.s] = e.id
		torn[e.s] = e.s.held
	}
	var kept []*entry
	for _, e := range flight {
		gone, torn := e.written, e.begun && !e.written && mute
		e.flying, e.written, e.begun = false, false, false
		if !e.live {
			if e.left && e.frames > 0 && (gone || e.maybe) {
				broke(e)
			}
			continue
		}
		if gone && e.frames == 0 {
			m.finish(e, "sent")
			continue
		}
		if gone {
			e.sends, e.maybe, left = e.sends+1, true, true
		}
		tears := &m.torn
		switch {
		case torn && tears.e != e:
			tears.e, tears.n, tears.since = e, 1, now
		case torn:
			tears.n++
		case gone && tears.e == e:
			tears.e = nil
		}
		at, orphan := brokeAt[e.s]
		orphan = orphan && e.s != nil && e.id > at
		how := ""
		switch {
		case orphan:
			how = "broken"
		case torn && tears.n > max(3, e.budget) && now-tears.since >= patience:
			how = "poisoned"
		case gone && e.class == NoRetry:
			how = "no-retry"
		case gone && e.by != 0 && e.by <= now:
			how = "expired"
		case gone && e.sends > e.budget && alone:
			how = "poisoned"
		case gone && e.sends > e.budget:
			how = "budget"
		case strict:
			how = "strict"
		}
		if how == "" {
			kept = append(kept, e)
			if gone {
				repeats++
			}
			continue
		}
		broke(e)
		strict = strictOrder
		m.finish(e, how)
	}
	var queue, again []*entry
	for _, e := range kept {
		if e.back {
			again = append(again, e)
		} else {
			queue = append(queue, e)
		}
	}
	m.queue, m.again = append(queue, m.queue...), append(again, m.again...)
	for s, at := range brokeAt {
		m.breakAt(s, at)
	}
	for _, s := range m.series {
		if !s.held || s.due {
			continue
		}
		ran := slices.ContainsFunc(kept, func(e *entry) bool { return e.s == s && e.live && e.maybe })
		if torn[s] || s.gap() && ran {
			m.breakHeld(s)
			continue
		}
		for _, e := range slices.Backward(kept) {
			if e.s == s && e.live {
				m.unqueue(e)
				s.parked = append([]*entry{e}, s.parked...)
			}
		}
		s.due, s.at = true, 0
	}
	return repeats, left
}

// reply is what happens when the oldest in flight is answered.
type reply struct {
	refused bool
	ran     bool // a refusal that may have run all the same
	leaving bool // the caller wants to leave while the reader is at work
	due     int64
}

// answer settles the oldest record in flight that expects a reply; what expects none before it was sent.
func (m *model) answer(e *entry, a reply) {
	e.flying = false
	s := e.s
	if !e.live {
		switch {
		case s == nil || !s.held || s.due:
		case a.refused:
			s.landed(a.due)
		case s.gap():
			m.breakHeld(s)
		default:
			s.landed(0)
		}
		return
	}
	if a.refused && a.ran && e.class == NoRetry {
		a.refused = false // it is the answer
	}
	deliver := func() {
		e.live = false
		m.out[e.id] = outcome{how: answered}
	}
	if !a.refused {
		deliver()
		if s != nil && s.held && !s.due {
			if s.gap() {
				m.breakHeld(s)
			} else {
				s.landed(0)
			}
		}
		return
	}
	if a.ran {
		e.sends, e.maybe = e.sends+1, true
		if e.sends > e.budget {
			m.finish(e, "budget")
			if s != nil {
				m.breakAt(s, e.id)
				if s.held {
					m.breakHeld(s)
				}
			}
			return
		}
	} else {
		e.refusals++
	}
	m.sweep()
	if s == nil {
		if a.leaving {
			m.finish(e, "left")
			return
		}
		e.due = a.due
		m.resting = append(m.resting, e)
		return
	}
	if !s.held {
		behind := slices.DeleteFunc(slices.Clone(m.flight), func(x *entry) bool { return x.s != s })
		if slices.ContainsFunc(behind, func(x *entry) bool { return x.frames == 0 }) {
			deliver()
			m.breakAt(s, e.id)
			return
		}
		s.held, s.due, s.at, s.out = true, false, 0, len(behind)+1
		for _, list := range [][]*entry{m.queue, m.again} {
			for _, x := range list {
				if x.s == s && x.live {
					s.parked = append(s.parked, x)
				}
			}
		}
		slices.SortFunc(s.parked, func(a, b *entry) int { return a.id - b.id })
		for _, x := range s.parked {
			m.unqueue(x)
		}
	}
	switch {
	case !a.leaving:
		s.refused = append(s.refused, e)
	default:
		m.finish(e, "left")
		if e.maybe {
			m.breakAt(s, e.id)
			m.breakHeld(s)
			return
		}
	}
	s.landed(a.due)
}

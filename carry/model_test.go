package carry

import (
	"fmt"
	"slices"
)

// The model is the rules of docs/ENGINE.md over plain slices: no blocks, no positions, no state words. It knows the
// order in which things were submitted (the id) and little else. A log must agree with it on every outcome, on what
// may go to the wire next, and on who is in flight.

type outcome struct {
	how   string
	fate  Fate
	sends int
}

const answered = "answered"

var whyNames = map[Why]string{
	WhyNoRetry: "no-retry", WhyExpired: "expired", WhyBudget: "budget", WhyPoisoned: "poisoned",
	WhyBroken: "broken", WhyStrict: "strict", WhyRefused: "refused", WhySent: "sent", WhyAsked: "asked",
}

// series is a Stream. While it is held, refused has the refused records in order and parked those held back.
type series struct {
	broken, held, due bool
	at                int64 // when due
	out               int   // answers still out while held
	breaks, last      int   // how often it broke, and behind whom last
	refused, parked   []*entry
}

type entry struct {
	id               int
	s                *series
	class            Class
	budget, frames   int
	by               int64
	enc              []byte
	prefix           int
	sends, refusals  int
	maybe            bool
	live             bool // somebody waits for it
	left             bool // its caller withdrew
	flying, written  bool
	begun            bool // some of it was written
	breaks           int  // of its series, when it was submitted or came back
	flew, back       bool // was published once; was away once
	due              int64
	ranOnce, denials int // witness: sends that may have run
}

type model struct {
	flight  []*entry // published, oldest first
	queue   []*entry // not published, never away, by id
	again   []*entry // not published, came back
	resting []*entry // waiting for their time, of no series
	series  []*series
	out     map[int]outcome
	dirty   bool
	torn    struct {
		e     *entry
		n     int
		since int64
	}
}

// finish records the one outcome of e.
func (m *model) finish(e *entry, how string) {
	o := outcome{how, NotSent, e.sends + e.refusals}
	if e.flying {
		o.sends++
	}
	if e.maybe || e.flying {
		o.fate = MaybeExecuted
	}
	m.out[e.id] = o
	e.live, m.dirty = false, true
}

// sweep takes what finished out of the queues.
func (m *model) sweep() {
	if m.dirty {
		dead := func(e *entry) bool { return !e.live && !e.left }
		m.queue, m.again = slices.DeleteFunc(m.queue, dead), slices.DeleteFunc(m.again, dead)
		m.resting = slices.DeleteFunc(m.resting, dead)
		m.dirty = false
	}
}

func (m *model) unqueue(e *entry) {
	is := func(x *entry) bool { return x == e }
	m.queue, m.again = slices.DeleteFunc(m.queue, is), slices.DeleteFunc(m.again, is)
	m.resting = slices.DeleteFunc(m.resting, is)
}

// breakAt fails what is later in s.
func (m *model) breakAt(s *series, id int) {
	s.broken, s.last = true, id
	s.breaks++
	var late []*entry
	for _, list := range [][]*entry{m.flight, m.queue, m.again, s.refused, s.parked} {
		for _, e := range list {
			if e.s == s && e.live && e.id > id {
				late = append(late, e)
			}
		}
	}
	for _, e := range late {
		m.finish(e, "broken")
	}
	gone := func(e *entry) bool { return e.id > id }
	s.refused, s.parked = slices.DeleteFunc(s.refused, gone), slices.DeleteFunc(s.parked, gone)
}

// breakHeld ends a hold by failure.
func (m *model) breakHeld(s *series) {
	refused := s.refused
	s.refused = nil
	for _, e := range refused {
		if e.live {
			m.finish(e, "refused")
		}
	}
	if len(refused) > 0 {
		m.breakAt(s, refused[0].id)
	}
	s.held, s.due, s.out = false, false, 0
	s.refused, s.parked = nil, nil
}

// behind says whether e, of whatever state, lies behind the last break of its series: its end breaks nothing more.
// Of older breaks a series knows nothing; a ghost from behind one of them may break it again.
func (e *entry) behind() bool { return e.breaks != e.s.breaks && e.id > e.s.last }

func (e *entry) lost() bool { return e.left && e.maybe }

func (s *series) gap() bool {
	return slices.ContainsFunc(s.refused, func(e *entry) bool { return e.live || e.lost() })
}

func (s *series) landed(due int64) {
	s.at = max(s.at, due)
	if s.out--; s.out == 0 {
		s.due = true
	}
}

// append submits e.
func (m *model) append(e *entry) {
	e.live = true
	if e.s != nil {
		e.breaks = e.s.breaks
	}
	if e.s != nil && e.s.held {
		e.s.parked = append(e.s.parked, e)
		return
	}
	m.queue = append(m.queue, e)
}

// next checks that e may go to the wire now and takes it off the queue.
func (m *model) next(e *entry) error {
	err := m.turn(e)
	switch {
	case err != nil:
	case e.back:
		m.unqueue(e)
	default:
		m.queue = m.queue[1:]
	}
	return err
}

// turn says why e may not go to the wire now.
func (m *model) turn(e *entry) error {
	m.sweep()
	switch {
	case !e.live || e.flying:
		return fmt.Errorf("%d is not waiting", e.id)
	case e.s != nil && e.s.held:
		return fmt.Errorf("%d goes out while its series is held", e.id)
	case !e.back && (len(m.queue) == 0 || m.queue[0] != e):
		return fmt.Errorf("%d goes out of turn", e.id)
	case !e.flew && !e.back && len(m.again) > 0:
		return fmt.Errorf("%d is unsent and goes out before %d, which came back", e.id, m.again[0].id)
	case e.back && !slices.Contains(m.again, e):
		return fmt.Errorf("%d did not come back", e.id)
	}
	if e.s != nil {
		for _, list := range [][]*entry{m.again, m.queue} {
			for _, x := range list {
				if x.s == e.s && x.id < e.id {
					return fmt.Errorf("%d overtakes %d in its series", e.id, x.id)
				}
			}
		}
	}
	return nil
}

func (m *model) publish(e *entry) {
	e.flying, e.flew, e.written = true, true, false
	m.flight = append(m.flight, e)
}

// withdraw is the caller of e leaving.
func (m *model) withdraw(e *entry) (w Withdrawal) {
	if !e.live {
		return w
	}
	w = Withdrawal{Won: true, Fate: NotSent, Sends: e.sends + e.refusals}
	if e.flying {
		w.Sends++
	}
	if e.maybe || e.flying {
		w.Fate = MaybeExecuted
	}
	e.live, e.left = false, true
	if e.flying {
		return w
	}
	m.sweep()
	m.unqueue(e)
	if e.lost() && e.s != nil && e.frames > 0 {
		m.breakAt(e.s, e.id)
	}
	return w
}

// settle ends all that match picks.
func (m *model) settle(match func(*entry) bool, how string) {
	m.sweep()
	hit := func(e *entry) bool { return e.live && match(e) }
	for _, s := range m.series {
		var first *entry
		for _, list := range [][]*entry{m.flight, m.queue, m.again} {
			for _, e := range list {
				if e.s == s && hit(e) && (first == nil || e.id < first.id) {
					first = e
				}
			}
		}
		if first != nil {
			m.finish(first, how)
			m.breakAt(s, first.id)
			if s.held {
				m.breakHeld(s)
			}
			continue
		}
		for _, e := range slices.Concat(s.refused, s.parked) {
			if hit(e) {
				m.finish(e, how)
				m.breakAt(s, e.id)
				gone := func(x *entry) bool { return x == e }
				s.refused, s.parked = slices.DeleteFunc(s.refused, gone), slices.DeleteFunc(s.parked, gone)
				break
			}
		}
	}
	for _, e := range slices.Concat(m.flight, m.queue, m.again, m.resting) {
		if e.s == nil && hit(e) {
			m.finish(e, how)
		}
	}
}

// due brings back what waited until now.
func (m *model) dueNow(now int64) {
	m.sweep()
	for _, e := range slices.Clone(m.resting) {
		if e.due <= now {
			m.unqueue(e)
			m.comeBack(e)
		}
	}
	for _, s := range m.series {
		if s.held && s.due && s.at <= now {
			m.unhold(s)
		}
	}
}

func (m *model) unhold(s *series) {
	back := slices.Concat(s.refused, s.parked)
	s.held, s.due, s.refused, s.parked = false, false, nil, nil
	for _, e := range back {
		m.comeBack(e)
	}
}

func (m *model) comeBack(e *entry) {
	if m.torn.e == e {
		m.torn.e = nil // it is another record now
	}
	if e.live {
		e.back = true
		if e.s != nil {
			e.breaks = e.s.breaks
		}
		m.again = append(m.again, e)
	}
}

package carry

import (
	"fmt"
	"slices"
)

func (w *world) endChunk() {
	if w.reading {
		w.l.End(&w.chunk)
		w.reading = false
	}
}

// answer lets the server answer the oldest request it has, if it has one.
func (w *world) answer() {
	i := slices.IndexFunc(w.m.flight, func(e *entry) bool { return e.frames > 0 })
	if i < 0 || !w.m.flight[i].written {
		return
	}
	if !w.reading {
		w.l.Begin(&w.chunk)
		w.reading = true
	}
	for {
		r := w.chunk.Peek()
		if r == nil {
			w.endChunk() // published after Begin
			return
		}
		e := w.m.flight[0]
		for int(r.Route) != e.id && e.frames == 0 && !e.live {
			w.m.flight = w.m.flight[1:] // the log acks those as soon as they are settled
			e = w.m.flight[0]
		}
		if int(r.Route) != e.id {
			w.failf("the reply of %d goes to %d", e.id, r.Route)
		}
		w.m.flight = w.m.flight[1:]
		if e.frames > 0 {
			w.take(r, e)
			return
		}
		if r.Decide() {
			w.end(e.id, outcome{how: "sent"})
			r.Owner = 0
			r.Settle()
			e.live, w.m.out[e.id] = false, outcome{how: "sent"}
		}
		w.chunk.Take()
	}
}

func (w *world) take(r *Record[int], e *entry) {
	a := reply{refused: w.t.n(4) == 0, ran: w.t.n(4) == 0, due: w.now + int64(w.t.n(10))}
	ticket := w.tickets[e.id]
	a.leaving = ticket != nil && w.t.n(12) == 0
	if !a.refused || !e.live || a.ran && e.class == NoRetry {
		a.leaving = false
	}
	if a.refused && !a.ran {
		e.ranOnce--
		e.denials++
	}
	w.answers++
	switch {
	case !r.Decide():
		if e.live {
			w.failf("the reader could not decide %d", e.id)
		}
		if a.refused && r.Held() {
			w.l.GhostRefused(r, a.due)
		} else if r.Held() {
			w.l.Executed(r, w.collect)
		}
	case !a.refused || a.ran && e.class == NoRetry:
		w.delivered(r, e.id, answered, true)
	default:
		w.refuse(r, e, a)
	}
	w.m.answer(e, a)
	w.chunk.Take()
	if w.t.n(3) == 0 {
		w.l.Lead(&w.chunk)
	}
	if w.t.n(4) == 0 {
		w.endChunk()
	}
}

// delivered is the reader settling a record; clean: its ticket may be used again.
func (w *world) delivered(r *Record[int], id int, how string, executed bool) {
	t := w.tickets[id]
	if executed && r.Held() {
		w.l.Executed(r, w.collect)
	}
	w.end(id, outcome{how: how})
	r.Owner = 0
	r.Settle()
	if t != nil && t.Reusable() {
		w.free = append(w.free, t)
	}
}

func (w *world) refuse(r *Record[int], e *entry, a reply) {
	r.Refused(a.ran)
	if r.Spent() {
		w.end(e.id, outcome{"budget", r.Fate(false), r.Sends()})
		r.Owner = 0
		r.Settle()
		w.l.Break(r, w.collect)
		return
	}
	if !w.chunkBytes(r, e) {
		w.failf("the bytes of %d differ at its refusal", e.id)
	}
	if a.leaving {
		if x := w.tickets[e.id].Withdraw(); x.Won {
			w.failf("%d withdrew from the reader", e.id)
		}
	}
	id, fate, sends := e.id, r.Fate(false), r.Sends()
	ok, left := w.l.Refuse(r, e.enc, []byte(fmt.Sprint("refused ", id)), a.due, w.collect)
	switch {
	case left != (ok && a.leaving):
		w.failf("the refusal of %d: left is %v", id, left)
	case left:
		w.end(id, outcome{"left", fate, sends})
	case !ok:
		w.delivered(r, id, answered, false)
	}
}

func (w *world) chunkBytes(r *Record[int], e *entry) bool {
	return slices.Equal(w.chunk.Encoded(r), e.enc)
}

package carry

import "fmt"

// witness checks what the server saw of one record against its promises.
func (w *world) witness(e *entry) {
	o, done := w.got[e.id]
	switch {
	case e.class == NoRetry && e.ranOnce > 1:
		w.failf("%d, not to be retried, may have run %d times", e.id, e.ranOnce)
	case e.ranOnce > e.budget+1:
		w.failf("%d may have run %d times on a budget of %d", e.id, e.ranOnce, e.budget)
	case e.frames == 0 && e.ranOnce > 1:
		w.failf("%d, without reply, was sent %d times", e.id, e.ranOnce)
	case done && o.fate == NotSent && o.how != "sent" && e.ranOnce > 0:
		w.failf("%d ended as not sent and may have run", e.id)
	}
}

// compare checks that the two agree.
func (w *world) compare() {
	if err := w.l.Check(); err != nil {
		w.failf("%v", err)
	}
	if len(w.got) != len(w.m.out) {
		for id := range w.all {
			if w.got[id] != w.m.out[id] {
				w.failf("%d ended as %v, want %v (%d and %d ended)%s", id, w.got[id], w.m.out[id], len(w.got), len(w.m.out), w.trace(id))
			}
		}
	}
	for i, s := range w.streams {
		if m := w.m.series[i]; s.Broken() != m.broken || s.Held() != m.held {
			w.failf("stream %d: broken %v, held %v; want %v, %v", i, s.Broken(), s.Held(), m.broken, m.held)
		}
	}
	if w.l.Untold() != 0 {
		w.failf("%d outcomes are untold", w.l.Untold())
	}
	flying := 0
	for _, e := range w.m.flight {
		if e.frames > 0 {
			flying++
		}
	}
	if n, _ := w.l.InFlight(); !w.reading && n != flying {
		w.failf("%d in flight, want %d", n, flying)
	}
}

// same compares all outcomes but those that carry no fate.
func (w *world) same() {
	for id, e := range w.all {
		got, want := w.got[id], w.m.out[id]
		if want.how == answered || want.how == "sent" {
			got.fate, got.sends, want.fate, want.sends = 0, 0, 0, 0
		}
		if got != want {
			w.failf("%d ended as %v, want %v", id, got, want)
		}
		w.witness(e)
	}
}

// trace lists the records of the series of id, for a failure message.
func (w *world) trace(id int) string {
	out := ""
	for i := range len(w.all) {
		if e := w.all[i+1]; e.s != nil && e.s == w.all[id].s && e.id < id+5 && (i > id-8 || w.got[e.id].how != answered && w.got[e.id].how != "broken" && w.got[e.id].how != "sent") {
			out += fmt.Sprintf("\n%d %v budget %d frames %d by %d maybe %v sends %d+%d left %v live %v: %v, want %v", e.id, e.class,
				e.budget, e.frames, e.by, e.maybe, e.sends, e.refusals, e.left, e.live, w.got[e.id], w.m.out[e.id])
		}
	}
	return out
}

package carry

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// run executes the program and drains what is left; it fails at the first difference. After each step the log is
// checked as a whole.
func (w *world) run() {
	for i := 0; w.t.more(); i++ {
		w.once(i)
		w.compare()
	}
	w.drain()
	w.same()
}

func (w *world) once(i int) {
	op := w.t.n(32)
	w.step = fmt.Sprint(i, " op ", op)
	switch {
	case op < 8:
		w.submit()
	case op < 12:
		w.claim()
	case op < 15:
		w.write(1 + w.t.n(1<<17))
	case op < 22:
		for range 1 + w.t.n(20) {
			w.answer()
		}
	case op < 25:
		w.withdraw()
	case op < 26:
		w.now += int64(w.t.n(8))
		w.expire()
	case op < 28:
		w.now += int64(w.t.n(12))
		w.l.Due(w.now)
		w.m.dueNow(w.now)
	case op < 30:
		w.cut()
	case op < 31:
		k := w.t.n(3)
		w.streams[k].Reset()
		w.m.series[k].broken = false
	default:
		w.endChunk()
		if w.t.n(3) == 0 {
			w.l.Trim()
		}
	}
}

// drain ends the program: all that waits is written and answered, the log must come out empty.
func (w *world) drain() {
	w.endChunk()
	w.t = tape{}
	for range 2000 {
		w.now += 1000
		w.l.Due(w.now)
		w.m.dueNow(w.now)
		w.t = tape{data: []byte{255, 255, 255, 255, 255, 255, 1, 1}}
		w.claim()
		w.t = tape{}
		w.write(1 << 30)
		for len(w.m.flight) > 0 {
			// Bytes that say: answered, not refused.
			w.t = tape{data: []byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}
			before := len(w.m.flight)
			w.answer()
			if stuck := !w.reading; len(w.m.flight) == before {
				w.endChunk()
				if stuck || !slices.ContainsFunc(w.m.flight, func(e *entry) bool { return e.frames > 0 }) {
					break
				}
			}
		}
		w.endChunk()
		if w.l.Empty() {
			break
		}
	}
	w.compare()
	w.l.Written()
	w.endChunk()
	for id, e := range w.all {
		if e.live {
			w.failf("%d never ended", id)
		}
	}
	if cmds, bytes := w.l.Held(); cmds != 0 || bytes != 0 {
		w.failf("%d commands and %d bytes are left", cmds, bytes)
	}
	w.l.Trim()
	if w.l.head != nil || w.l.shelves.n > 0 {
		s := ""
		for b := w.l.head; b != nil; b = b.next {
			s += fmt.Sprintf(" [n %d dead %d big %v at %v cur %v]", b.n, b.dead, b.big, b == w.l.at, b == w.l.cur)
		}
		w.failf("an empty log keeps blocks:%s, acked %d, published %d, busy %v", s, w.l.ack, w.l.pub, w.l.busy != nil)
	}
}

func program(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 4))
	p := make([]byte, 100+rng.IntN(1200))
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	return p
}

// Covers: S4-5, S4-6, E-1, E-3, E-5, E-18, E-41, E-44, A-7
func TestRandomProgramsEndAsTheModelSays(t *testing.T) {
	seeds := uint64(2000)
	if raceEnabled {
		seeds = 300 // the race detector has nothing to find here
	}
	for seed := range seeds {
		newWorld(t, fmt.Sprint("seed ", seed), program(seed)).run()
	}
}

func FuzzLogAgainstModel(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(program(seed))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > 4096 {
			t.Skip("longer programs find nothing that shorter ones do not")
		}
		newWorld(t, "fuzz", p).run()
	})
}

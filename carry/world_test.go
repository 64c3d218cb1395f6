package carry

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// tape is a program: each step takes what it needs from it.
type tape struct {
	data []byte
	at   int
}

func (t *tape) more() bool { return t.at < len(t.data) }

func (t *tape) n(limit int) int {
	if !t.more() {
		return 0
	}
	v := int(t.data[t.at])
	t.at++
	if limit > 256 && t.more() {
		v = v<<8 | int(t.data[t.at])
		t.at++
	}
	return v % limit
}

// world drives a log and the model with the same program, as an engine would, and fails at the first difference.
type world struct {
	tb      testing.TB
	name    string
	l       Log[int] // the owner is the id
	m       model
	t       tape
	now     int64
	all     map[int]*entry
	streams []*Stream[int]
	tickets map[int]*Ticket[int]
	free    []*Ticket[int] // to be attached again
	got     map[int]outcome

	chunk   Chunk[int]
	reading bool
	answers int // in this session

	span    Span[int]
	writing bool
	in      []*entry // of the span
	wrote   int      // bytes of it
	step    string
}

func newWorld(tb testing.TB, name string, program []byte) *world {
	w := &world{tb: tb, name: name, t: tape{data: program}, now: 1, all: map[int]*entry{}, tickets: map[int]*Ticket[int]{}, got: map[int]outcome{}}
	w.m.out = map[int]outcome{}
	for range 3 {
		w.streams = append(w.streams, new(Stream[int]))
		w.m.series = append(w.m.series, new(series))
	}
	return w
}

func (w *world) failf(format string, args ...any) {
	w.tb.Helper()
	w.tb.Fatalf("%s, step %s: %s", w.name, w.step, fmt.Sprintf(format, args...))
}

func (w *world) collect(e End[int]) {
	o := outcome{whyNames[e.Why], e.Fate, e.Sends}
	if e.Why == WhyRefused && string(e.Frame) != fmt.Sprint("refused ", e.Owner) {
		w.failf("%d ended with the refusal %q", e.Owner, e.Frame)
	}
	w.end(e.Owner, o)
}

func (w *world) end(id int, o outcome) {
	if old, twice := w.got[id]; twice || w.all[id] == nil {
		w.failf("%d ended as %v, before as %v", id, o, old)
	}
	w.got[id] = o
	delete(w.tickets, id)
}

// request encodes id so that the bytes on a connection say what they are.
func request(id, size int) []byte {
	b := make([]byte, max(size, 8))
	binary.BigEndian.PutUint32(b, uint32(id))
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)))
	for i := 8; i < len(b); i++ {
		b[i] = byte(id + i)
	}
	return b
}

const prefixMark = 0xffffffff

// parse returns the ids of the requests that b consists of, and the bytes of each.
func (w *world) parse(b []byte) (ids []int, encs [][]byte) {
	for len(b) > 0 {
		n := 0
		if len(b) >= 16 && binary.BigEndian.Uint32(b) == prefixMark {
			n = 8
		}
		if len(b) < n+8 {
			w.failf("a claim ends inside a record")
		}
		id, size := int(binary.BigEndian.Uint32(b[n:])), int(binary.BigEndian.Uint32(b[n+4:]))
		if size < 8 || n+size > len(b) {
			w.failf("a claim holds half a record, or none at all")
		}
		ids, encs = append(ids, id), append(encs, b[:n+size])
		b = b[n+size:]
	}
	return ids, encs
}

func (w *world) submit() {
	count := 1
	if w.t.n(10) == 0 {
		count = 1 + w.t.n(600)
	}
	kind, frames, class, budget, by, ticketed := w.t.n(10), 1, Class(w.t.n(2)), w.t.n(4), w.t.n(4), w.t.n(3)
	size := 8 + w.t.n(30)
	switch w.t.n(12) {
	case 0:
		size = BigRequest + w.t.n(24<<10)
	case 1:
		size = 100 + w.t.n(4000)
	case 2:
		size = BigRequest - 2 + w.t.n(4)
	case 3:
		if count == 1 {
			size = 300 << 10
		}
	}
	if count > 60 && size > 1000 {
		count = 60
	}
	switch w.t.n(8) {
	case 0:
		frames = 0
	case 1:
		frames = 3
	}
	for range count {
		e := &entry{id: len(w.all) + 1, class: class, budget: budget, frames: frames}
		if by == 0 {
			e.by = w.now + int64(w.t.n(20))
		}
		e.enc = request(e.id, size)
		r := Record[int]{Owner: e.id, Class: class, Budget: uint16(budget), Frames: uint16(frames), SettleBy: e.by,
			Start: w.now, Route: uint64(e.id)}
		if kind < 3 {
			e.s, r.Stream = w.m.series[kind], w.streams[kind]
			if e.s.broken {
				return
			}
		}
		w.all[e.id] = e
		if ticketed > 0 {
			var t *Ticket[int]
			if n := len(w.free); n > 0 && ticketed == 2 {
				t, w.free = w.free[n-1], w.free[:n-1]
			} else {
				t = new(Ticket[int])
			}
			r.Attach(t)
			w.tickets[e.id] = t
		}
		w.l.Append(&r, slices.Clone(e.enc))
		w.m.append(e)
	}
}

// quiet lets the log settle what expects no reply and has been written.
func (w *world) quiet() {
	w.l.Quiet(w.span, w.wrote, func(r *Record[int]) { w.end(r.Owner, outcome{how: "sent"}); r.Owner = 0 })
	for _, e := range w.in {
		if e.frames == 0 && e.written && e.live {
			e.live = false
			w.m.out[e.id] = outcome{how: "sent"}
		}
	}
}

func (w *world) write(n int) {
	if !w.writing {
		return
	}
	w.wrote = min(w.wrote+n, w.span.Size)
	at := 0
	for _, e := range w.in {
		if at += len(e.enc); at <= w.wrote && !e.written {
			e.written = true
			e.ranOnce++
		}
	}
	if w.t.n(2) == 0 || w.wrote == w.span.Size {
		w.quiet()
	}
	if w.wrote == w.span.Size {
		w.writing, w.in = false, nil
		if w.t.n(2) == 0 {
			w.l.Written()
		}
	}
}

func (w *world) claim() {
	if w.writing {
		w.write(w.span.Size)
	}
	maxCmds, maxBytes, alone := w.t.n(700), 64+w.t.n(1<<16)*4, w.t.n(10) == 0
	flying := 0
	for _, e := range w.m.flight {
		if e.frames > 0 {
			flying++
		}
	}
	if w.reading {
		flying, _ = w.l.InFlight() // answered and not acked is still in the way
	}
	if w.t.n(25) == 0 {
		w.deny(maxCmds, maxBytes, alone)
		return
	}
	s, ok := w.l.Claim(maxCmds, maxBytes, alone)
	if !ok {
		// The order of those that came back is the log's own: one of those that may be next must be too large.
		heads, large := 0, 0
		for _, e := range slices.Concat(w.m.again, w.m.queue) {
			if w.m.turn(e) == nil {
				heads++
				if maxCmds == 0 && e.frames > 0 || len(e.enc) > maxBytes && flying > 0 {
					large++
				}
			}
		}
		if heads > 0 && large == 0 {
			w.failf("nothing to claim, but %d may go", heads)
		}
		return
	}
	w.span, w.writing, w.wrote, w.in = s, true, 0, nil
	ids, encs := w.parse(whole(w.tb, &s))
	slots := 0
	for i, id := range ids {
		e := w.all[id]
		if e == nil || !slices.Equal(e.enc, encs[i]) {
			w.failf("the bytes of %d differ", id)
		}
		if err := w.m.next(e); err != nil {
			w.failf("%v", err)
		}
		w.m.publish(e)
		w.in = append(w.in, e)
		if e.frames > 0 {
			slots++
		}
	}
	switch {
	case len(ids) != s.Commands:
		w.failf("a claim of %d records holds %d", s.Commands, len(ids))
	case slots > maxCmds:
		w.failf("claimed %d commands of %d", slots, maxCmds)
	case s.Size > maxBytes && !(flying == 0 && (len(ids) == 1 || slots <= 1 && w.in[0].frames == 0)):
		w.failf("claimed %d bytes of %d", s.Size, maxBytes)
	case s.Split() && s.Size > spanBytes:
		w.failf("claimed %d bytes of several blocks", s.Size)
	case alone && slots > 1:
		w.failf("claimed %d commands for one alone", slots)
	}
}

func (w *world) deny(maxCmds, maxBytes int, alone bool) {
	first := map[*series]*entry{}
	var ends []End[int]
	w.l.Deny(maxCmds, maxBytes, alone, func(e End[int]) { ends = append(ends, e) })
	for _, end := range ends {
		w.collect(end)
		if e := w.all[end.Owner]; end.Why == WhyAsked {
			if err := w.m.next(e); err != nil {
				w.failf("denied: %v", err)
			}
			w.m.finish(e, "asked")
			if first[e.s] == nil {
				first[e.s] = e
			}
		}
	}
	for s, e := range first {
		if s != nil {
			w.m.breakAt(s, e.id)
		}
	}
}

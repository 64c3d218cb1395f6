package carry

import (
	"encoding/binary"
	"fmt"
	"maps"
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
		e := &entry{id: len(w.all) + 1, class: class, budget: budget, frames: frames, enc: nil}
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
			t.Tag = uint32(e.id)
			r.Attach(t)
			w.tickets[e.id] = t
		}
		w.l.Append(r, slices.Clone(e.enc))
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
	w.wrote = min(w.wrote+n, len(w.span.Bytes))
	at := 0
	for _, e := range w.in {
		if at += len(e.enc); at <= w.wrote && !e.written {
			e.written = true
			e.ranOnce++
		}
	}
	if w.t.n(2) == 0 || w.wrote == len(w.span.Bytes) {
		w.quiet()
	}
	if w.wrote == len(w.span.Bytes) {
		w.writing, w.in = false, nil
		if w.t.n(2) == 0 {
			w.l.Written()
		}
	}
}

func (w *world) claim() {
	if w.writing {
		w.write(len(w.span.Bytes))
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
	ids, encs := w.parse(s.Bytes)
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
	case len(s.Bytes) > maxBytes && !(flying == 0 && (len(ids) == 1 || slots <= 1 && w.in[0].frames == 0)):
		w.failf("claimed %d bytes of %d", len(s.Bytes), maxBytes)
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

func (w *world) withdraw() {
	if len(w.tickets) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(w.tickets))
	e := w.all[ids[w.t.n(len(ids))]]
	got, want := w.tickets[e.id].Withdraw(), w.m.withdraw(e)
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
	d := Death[int]{Now: w.now, Strict: w.t.n(8) == 0, Alone: w.t.n(6) == 0}
	if w.writing {
		exact := w.t.n(3) > 0
		if !exact && w.wrote > 0 { // cannot tell: all of it counts
			w.wrote = len(w.span.Bytes)
			for _, e := range w.in {
				if !e.written {
					e.written = true
					e.ranOnce++
				}
			}
		}
		d.Last, d.Written = w.span, w.wrote
	}
	repeats, left := w.l.Cut(d, w.collect)
	wantRepeats, wantLeft := w.m.cut(w.now, d.Strict, d.Alone)
	if repeats != wantRepeats || left != wantLeft {
		w.failf("the cut repeats %d and left is %v, want %d and %v", repeats, left, wantRepeats, wantLeft)
	}
	w.writing, w.in, w.answers = false, nil, 0
	if w.t.n(5) == 0 {
		w.evict()
	}
}

// evict takes all out, as for another engine, lets some end there and brings the rest back.
func (w *world) evict() {
	ws := w.l.Evict()
	if n := w.l.Waiting(); n != 0 {
		w.failf("%d wait after Evict", n)
	}
	m := &w.m
	m.sweep()
	for _, e := range slices.Concat(m.queue, m.again, m.resting) {
		m.unqueue(e)
		m.comeBack(e)
	}
	for _, s := range m.series {
		if s.held {
			m.unhold(s)
		}
	}
	slices.SortFunc(m.again, func(a, b *entry) int { return a.id - b.id })
	var back []Away[int]
	for i := range ws {
		a := &ws[i]
		e := w.all[int(a.Rec.Route)]
		if e.s == nil && w.t.n(8) == 0 {
			if end, ok := a.End(); ok != e.live {
				w.failf("ending %d away: %v", e.id, ok)
			} else if ok {
				w.collect(end)
				m.finish(e, "asked")
			}
			continue
		}
		if e.s == nil && e.frames > 0 && w.t.n(4) == 0 {
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

// Package carry decides whether something may be sent again. It is the log of what one connection still owes,
// and the rules for its records when the connection dies. It is pure: no I/O, no clock, no goroutine; "now" is
// an argument. It knows nothing of commands, replies or connections. The engine guards it: every method that
// does not say otherwise is called with the log locked, and the lock is never held over I/O or foreign code.
//
// The log is one ordered chain of blocks with three positions in it:
//
//	acked <= published <= end
//
// What lies before acked is answered. [acked, published) is on the wire in the running session, or was claimed
// for it. [published, end) waits. acked is moved by the reader (Begin, End), published by the engine goroutine
// (Claim, and back to acked by Cut), end by submitters (Append). Replay is nothing but published set back:
// bytes are encoded once and rewritten in place.
package carry

import (
	"sync"
	"sync/atomic"
)

// Log holds the records of one engine. T is what the engine settles. The zero Log is ready to use.
type Log[T any] struct {
	sync.Mutex // the engine's one mutex; it lives here so that a Ticket can find it

	head *block[T] // first block not recycled
	at   *block[T] // block of the first record not acked
	ack  int       // its index there
	cur  *block[T] // block of the first record not published
	pub  int       // its index there
	tail *block[T]
	busy *block[T] // block the writer is writing from; not recycled meanwhile

	torn     tears
	seq      uint64
	cmds     int // records from acked to end, ghosts and tombstones included, and those away in waiting
	bytes    int
	inFlight int    // of them, in [acked, published) and with a reply to come
	flying   int    // their bytes, those without reply included
	claimed  uint64 // records ever published, and ever acked or taken back by a cut
	answered uint64

	lead atomic.Uint64 // acked by the reader in the chunk at hand, not yet told by End: bytes<<leadBits | commands

	waiting []Away[T]    // records away: a heap by due time
	holding []*Stream[T] // streams that wait for their in-flight answers
	reading bool         // between Begin and End
	untold  []End[T]     // outcomes for the next Settle or Cut to tell

	memBlock int // and bytes; 0 = blockBytes
	perBlock int // records a new block has room for; 0 = blockRecords
	shelves  shelves[T]
	spares   spares[T]
	parts    [spanBlocks][]byte // of the last Span
}

const leadBits = 24 // a chunk answers no more commands than this, and fewer than 2^40 bytes

// Held is what counts against the limits: commands and bytes accepted and not yet done with.
func (l *Log[T]) Held() (cmds, bytes int) {
	lead := l.lead.Load()
	return l.cmds - int(lead&(1<<leadBits-1)), l.bytes - int(lead>>leadBits)
}

// InFlight is what the window bounds: published commands that expect a reply, and the bytes published.
func (l *Log[T]) InFlight() (cmds, bytes int) { return l.inFlight, l.flying }

// Published and Acked count records since the log was made: what was claimed, and what was answered or, by a cut,
// taken back. Their difference is what is on the wire.
func (l *Log[T]) Published() uint64 { return l.claimed }

// Acked: see Published.
func (l *Log[T]) Acked() uint64 { return l.answered }

// Reaches says whether the oldest record in flight is one of s.
func (l *Log[T]) Reaches(s Span[T]) bool {
	return l.inFlight > 0 && l.answered >= s.from && l.answered < s.from+uint64(s.Commands)
}

// Waiting counts the records that are away until their backoff has passed.
func (l *Log[T]) Waiting() int {
	n := 0
	for i := range l.waiting {
		if l.waiting[i].stream == nil {
			n++
		}
	}
	for _, s := range l.holding {
		n += s.waiting()
	}
	return n
}

// Empty says that nothing is owed: no record in the chain, none waiting, no outcome untold.
func (l *Log[T]) Empty() bool { return l.cmds == 0 && len(l.untold) == 0 }

// Untold counts the records that ended where nobody collected (in Withdraw, Due or Splice, by the break of a
// Stream). The next Settle or Cut tells.
func (l *Log[T]) Untold() int { return len(l.untold) }

// Append is AppendAt for a record that has its Start.
func (l *Log[T]) Append(r *Record[T], enc []byte) (kept bool) { return l.AppendAt(r, enc, r.Start) }

// AppendAt puts r, submitted at start, at the end with the encoded request enc. It copies enc, unless enc is BigRequest or longer: then
// the log keeps it and kept is true. r is copied and may be used again. The caller has made sure of the limits.
func (l *Log[T]) AppendAt(r *Record[T], enc []byte, start int64) (kept bool) {
	l.cmds++
	l.bytes += len(enc)
	if s := r.Stream; s != nil {
		r.gen = s.gen
		r.Start = start
		if s.held.Load() {
			r.size = uint32(len(enc))
			l.name(r, settled)
			l.queueHeld(s, r, enc)
			return false
		}
	}
	if len(enc) >= BigRequest {
		l.appendBig(r, enc, start)
		return true
	}
	b := l.tail
	if b == nil || !b.room(len(enc)) || b.back < b.n && (b != l.cur || l.pub < b.n) {
		// Also behind records that came back and still wait: others that come back must find their place.
		if b != nil {
			l.learn(b)
		}
		b = l.take(len(enc), 1)
		l.insert(b, l.tail)
	}
	off := len(b.buf)
	b.buf = append(b.buf, enc...)
	l.name(l.place(b, r, off, len(enc), start), settled)
	b.back = b.n
	l.aim()
	return false
}

// queueHeld keeps r away from the chain until its stream goes on.
func (l *Log[T]) queueHeld(s *Stream[T], r *Record[T], enc []byte) {
	if w, ok := l.depart(r, pending, append([]byte(nil), enc...)); ok {
		l.cmds--
		l.bytes -= len(enc)
		s.queued = append(s.queued, w)
	}
}

// appendBig makes a block of its own of enc.
func (l *Log[T]) appendBig(r *Record[T], enc []byte, start int64) {
	b := l.spares.trade(enc)
	l.insert(b, l.tail)
	l.name(l.place(b, r, 0, len(enc), start), settled)
	b.back = 1
	l.aim()
}

// name gives r its next sequence number and makes it pending in this log, coming from the state from. False: the
// caller left meanwhile.
func (l *Log[T]) name(r *Record[T], from uint32) bool {
	l.seq++
	r.seq = l.seq
	t := r.ticket
	if t == nil {
		ok := from == settled || r.own&stateMask == from
		r.own = pending
		return ok
	}
	t.seq = r.seq
	if from == away && t.home.Load() != l {
		t.moved = true
	}
	if t.home.Load() != l {
		t.home.Store(l)
	}
	if from == settled {
		atomic.StoreUint32(&t.word, pending)
		return true
	}
	return r.comeBack(pending)
}

// place writes r, of so many bytes from off on, into the next slot of b, and returns the slot. What is set now is set there: a CPU
// does not forward stores of single fields to the wider loads of a copy, and would wait for them.
func (l *Log[T]) place(b *block[T], r *Record[T], off, size int, start int64) *Record[T] {
	if r.Frames == 0 {
		b.quiet++
	}
	slot := &b.recs[b.n]
	*slot = *r
	slot.Start, slot.off, slot.size = start, uint32(off), uint32(size)
	if t := slot.ticket; t != nil {
		t.blk = b
	}
	b.n++
	b.prefetch(size)
	return slot
}

// aim gives the positions a block after the chain was empty.
func (l *Log[T]) aim() {
	if l.cur == nil {
		l.at, l.cur = l.head, l.head
	}
}

// Claim publishes the next range: at most maxCmds commands that expect a reply and maxBytes bytes, at a record
// boundary, all of it in one block, or in several big ones of at most spanBytes together; a single record larger than maxBytes is claimed when nothing is in flight.
// alone claims up to and including the first record that expects a reply. It frees what it finds dead; nothing
// to claim returns false. The previous Span is done with.
func (l *Log[T]) Claim(maxCmds, maxBytes int, alone bool) (s Span[T], ok bool) {
	l.Written()
	if !l.seek() {
		return s, false
	}
	b, from := l.cur, l.pub
	start := int(b.recs[from].off)
	to, slots := l.extent(b, from, maxCmds, maxBytes, alone)
	if to == from {
		return s, false
	}
	end := len(b.buf)
	if to < b.n {
		end = int(b.recs[to].off)
	}
	s = Span[T]{
		Bytes: b.buf[start:end:end], Size: end - start, Commands: to - from,
		blk: b, first: from, start: start, from: l.claimed, quiet: b.quiet > 0,
	}
	l.pub = to
	l.busy = b
	if b.big && !alone {
		l.lengthen(&s, maxCmds-slots, min(maxBytes, spanBytes))
	}
	l.inFlight += slots + len(s.more)
	l.flying += s.Size
	l.claimed += uint64(s.Commands)
	return s, true
}

// Claimable says whether there is anything to claim, dropping what is dead on the way.
func (l *Log[T]) Claimable() bool {
	l.Written()
	return l.seek()
}

// Quieter says whether the next Claim may have records that expect no reply among others, or none but such.
func (l *Log[T]) Quieter() bool { return l.seek() && l.cur.quiet > 0 }

// CanClaim says whether Claim with the same arguments would publish anything, dropping what is dead on the way.
func (l *Log[T]) CanClaim(maxCmds, maxBytes int, alone bool) bool {
	if !l.Claimable() {
		return false
	}
	to, _ := l.extent(l.cur, l.pub, maxCmds, maxBytes, alone)
	return to > l.pub
}

// Deny fails what Claim with the same arguments would publish of its first block, and breaks the streams of it.
func (l *Log[T]) Deny(maxCmds, maxBytes int, alone bool, f func(End[T])) {
	if !l.Claimable() {
		return
	}
	b, broke := l.cur, false
	to, _ := l.extent(b, l.pub, maxCmds, maxBytes, alone)
	for i := l.pub; i < to; i++ {
		if r := &b.recs[i]; r.claim() {
			b.dead++
			broke = r.broke() || broke
			f(r.end(WhyAsked, false))
		}
	}
	if broke {
		l.Settle(func(*Record[T]) bool { return false }, WhyBroken, f)
		return
	}
	l.sweepDead()
}

// extent finds how far a claim from index from may go, and how many replies that makes.
func (l *Log[T]) extent(b *block[T], from, maxCmds, maxBytes int, alone bool) (to, slots int) {
	start := int(b.recs[from].off)
	if b.quiet == 0 && !alone && b.n-from <= maxCmds && len(b.buf)-start <= maxBytes {
		return b.n, b.n - from
	}
	for to = from; to < b.n; to++ {
		r := &b.recs[to]
		if int(r.off)-start+int(r.size) > maxBytes && !(to == from && l.inFlight == 0) {
			break
		}
		if r.Frames == 0 {
			continue
		}
		if slots == maxCmds {
			break
		}
		slots++
		if alone {
			to++
			break
		}
	}
	return to, slots
}

// seek moves the cursor to the first live record that waits, dropping dead ones. False: none.
func (l *Log[T]) seek() bool {
	for l.cur != nil {
		b := l.cur
		if b.dead > 0 {
			l.drop(b, l.pub)
		}
		if l.pub < b.n {
			return true
		}
		if b.next == nil {
			return false
		}
		b.passed = true
		l.cur, l.pub = b.next, 0
		l.release()
	}
	return false
}

// drop compacts what is dead in b from index from on and gives the room back.
func (l *Log[T]) drop(b *block[T], from int) {
	cmds, bytes := b.compact(from)
	l.cmds -= cmds
	l.bytes -= bytes
	if b.big && b.n == 0 {
		l.spares.uses(-cap(b.mem))
		b.mem, b.buf = nil, nil // the block may stand where a position is, and stay for a while
	}
}

// Written says that the writer is done with its span: the block may be recycled.
func (l *Log[T]) Written() {
	l.busy = nil
	l.ackQuiet()
	l.release()
}

// Quiet calls f for the records without reply of the first n bytes of s whose outcome f decides by returning: the
// kernel has their last byte. Records that somebody else settled are passed over.
func (l *Log[T]) Quiet(s Span[T], n int, f func(*Record[T])) {
	if !s.quiet {
		return
	}
	base := int(s.blk.recs[s.first].off)
	for i := s.first; i < s.first+s.Commands; i++ {
		r := &s.blk.recs[i]
		if r.Frames == 0 && int(r.off+r.size)-base <= n && r.claim() {
			f(r)
		}
	}
}

// release recycles the blocks before acked, and empties the last one in place when all of it is answered.
func (l *Log[T]) release() {
	if l.at == nil {
		return
	}
	for !l.reading && l.at != l.cur && l.ack == l.at.n {
		l.at, l.ack = l.at.next, 0
	}
	for l.head != l.at && l.head != l.busy {
		b := l.head
		l.unlink(b)
		l.give(b)
	}
	b := l.head
	if l.reading || b != l.cur || b != l.at || b == l.busy || l.ack != b.n || l.pub != b.n || b.n == 0 {
		return
	}
	if b.big && b == l.tail {
		l.unlink(b)
		l.at, l.ack, l.cur, l.pub = nil, 0, nil, 0
		l.give(b)
		return
	}
	if !b.big {
		b.reset()
		l.pub, l.ack = 0, 0
	}
}

// Trim lets go of recycled blocks, and of the chain when it is empty; for an idle engine.
func (l *Log[T]) Trim() {
	l.seek() // past what died
	l.release()
	l.Shed()
	if l.head != nil && l.head == l.tail && l.head.n == 0 && l.busy == nil {
		l.head, l.tail, l.at, l.cur, l.pub, l.ack = nil, nil, nil, nil, 0, 0
		l.shelves = shelves[T]{eased: l.shelves.eased}
		clear(l.parts[:])
	}
}

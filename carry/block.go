package carry

import (
	"slices"
	"unsafe"
)

// A block holds encoded bytes and their records by value. It never grows, so a submitter appending behind the
// cursor never moves what the writer or the reader look at.
const (
	blockBytes   = 64 << 10  // at least, and in steps of this
	widestBytes  = 256 << 10 // at most
	blockRecords = 600       // at most
	fewRecords   = 64        // at least
	// BigRequest is the size from which an encode buffer becomes a block of its own instead of being copied.
	BigRequest = 16 << 10
	maxSpare   = 16 << 20 // bytes of recycled big blocks kept in any case
	fewSpares  = 64       // of them are looked at for one that fits
	ahead      = 8        // records for whose memory is asked before they come
)

type block[T any] struct {
	mem        []byte // all its room; does not change, so that the reader may look at it without the lock
	buf        []byte
	recs       []Record[T] // its whole capacity; n are in use
	n          int
	dead       int  // records at or behind the cursor that are not to be sent
	quiet      int  // records without reply
	passed     bool // the cursor has left it: all published
	big        bool // one record, with a buffer of its own
	back       int  // the records from this index on came back by Splice
	prev, next *block[T]
}

func (b *block[T]) room(size int) bool {
	return !b.big && b.n < len(b.recs) && len(b.buf)+size <= cap(b.buf)
}

func (b *block[T]) bytes(r *Record[T]) []byte { return b.mem[r.off : r.off+r.size : r.off+r.size] }

// prefetch asks for the memory of the records that follow, each of about that size. It was used before and lies in the cache of the
// reader's CPU; who appended them would wait for it at its next locked instruction, the Unlock.
func (b *block[T]) prefetch(size int) {
	if i := b.n + ahead; i < len(b.recs) {
		prefetchLines(unsafe.Pointer(&b.recs[i]))
	}
	if i := len(b.buf) + ahead*size; i < len(b.mem) {
		prefetchLines(unsafe.Pointer(&b.mem[i]))
	}
}

// bigBlock returns a block for one record with these bytes; buf may be empty with room for them.
func bigBlock[T any](buf []byte) *block[T] {
	return &block[T]{mem: buf[:cap(buf)], buf: buf, recs: make([]Record[T], 1), big: true}
}

// spares are big blocks that were answered, for their buffers to be encoded into again: a big request would else cost an
// allocation of its size each time. As much is kept as was in use lately, and a little in any case.
type spares[T any] struct {
	blocks []*block[T]
	bytes  int
	used   int    // bytes of the big blocks in the chain
	most   int    // of them, lately
	left   []byte // the buffer of the one taken last
	idle   int    // blocks that nobody has needed since ease was called last
}

// uses counts n more bytes of big blocks in the chain.
func (s *spares[T]) uses(n int) {
	s.used += n
	s.most = max(s.most, s.used)
}

// keep takes b, which was in the chain, unless that would be too much.
func (s *spares[T]) keep(b *block[T]) {
	size := cap(b.mem)
	s.used -= size
	if b.mem == nil || s.bytes+size > maxSpare && s.used+s.bytes+size > s.most {
		return
	}
	clear(b.recs)
	*b = block[T]{mem: b.mem, recs: b.recs, big: true}
	s.blocks = append(s.blocks, b)
	s.bytes += size
}

// ease lets go of that part, in easeSpan, of those that nobody has needed, the oldest ones first.
func (s *spares[T]) ease(part int64) {
	s.most -= int((int64(s.most-s.used)*part + easeSpan - 1) / easeSpan)
	drop := int((int64(s.idle)*part + easeSpan - 1) / easeSpan)
	for _, b := range s.blocks[:drop] {
		s.bytes -= cap(b.mem)
	}
	s.blocks = slices.Delete(s.blocks, 0, drop)
	s.idle = len(s.blocks)
}

// trade returns a block that holds enc, and leaves a buffer of about that size, if there is one.
func (s *spares[T]) trade(enc []byte) *block[T] {
	s.uses(cap(enc))
	for i := len(s.blocks) - 1; i >= max(0, len(s.blocks)-fewSpares); i-- {
		b := s.blocks[i]
		if size := cap(b.mem); len(enc) <= size && size <= 4*len(enc) {
			last := len(s.blocks) - 1
			s.blocks[i], s.blocks[last] = s.blocks[last], nil
			s.blocks = s.blocks[:last]
			s.bytes -= size
			s.idle = min(s.idle, last)
			s.left = b.mem[:0]
			b.mem, b.buf = enc[:cap(enc)], enc
			return b
		}
	}
	return bigBlock[T](enc)
}

// Spare returns a buffer to encode the next request into, in place of the one that the last Append has kept: one of about
// its size whose request was answered; nil when there is none.
func (l *Log[T]) Spare() []byte {
	spare := l.spares.left
	l.spares.left = nil
	return spare
}

// Spared is how many bytes of buffers wait to be used again.
func (l *Log[T]) Spared() int { return l.spares.bytes }

// find returns the index of the record with that sequence number. Sequence numbers rise within a block.
func (b *block[T]) find(seq uint64) int {
	lo, hi := 0, b.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if b.recs[mid].seq < seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == b.n || b.recs[lo].seq != seq {
		panic("carry: invariant: a pending ticket points at a block without its record")
	}
	return lo
}

// compact drops the dead records from index from on, moving bytes and records down. Only for what is not
// published. It returns how many records and bytes it dropped.
func (b *block[T]) compact(from int) (cmds, bytes int) {
	at := len(b.buf)
	if from < b.n {
		at = int(b.recs[from].off)
	}
	to, back := from, b.back
	for i := from; i < b.n; i++ {
		r := &b.recs[i]
		if i == b.back {
			back = to
		}
		if !r.live() {
			cmds++
			bytes += int(r.size)
			if r.Frames == 0 {
				b.quiet--
			}
			continue
		}
		if to != i {
			copy(b.buf[at:], b.bytes(r))
			b.recs[to] = *r
			b.recs[to].off = uint32(at)
		}
		at += int(r.size)
		to++
	}
	clear(b.recs[to:b.n])
	b.n, b.buf, b.dead, b.back = to, b.buf[:at], 0, min(back, to)
	return cmds, bytes
}

// reset empties b. Its records stay as they are: each is written whole before it is used, and the owners were dropped when
// they were settled.
func (b *block[T]) reset() {
	b.buf, b.n, b.dead, b.quiet, b.passed, b.back = b.buf[:0], 0, 0, 0, false, 0
}

// learn notes from a block that is full what the next ones are to have room for: as many bytes as their records need, since a block is
// a write, and no more records than fit into those.
func (l *Log[T]) learn(b *block[T]) {
	if b.big || b.n == 0 {
		return
	}
	each := max(len(b.buf)/b.n, 1)
	steps := (each*blockRecords + blockBytes/2) / blockBytes
	l.memBlock = min(max(steps*blockBytes, blockBytes), widestBytes)
	l.perBlock = min(max(l.memBlock/each*5/4, fewRecords), blockRecords)
}

// take returns a block with room for size bytes and n records, recycled if possible.
func (l *Log[T]) take(size, n int) *block[T] {
	want := l.perBlock
	if want == 0 {
		want = blockRecords
	}
	want = max(want, n)
	mem := max(size, l.memBlock, blockBytes)
	mem = (mem + blockBytes - 1) / blockBytes * blockBytes
	b := l.shelves.take(mem)
	switch {
	case b == nil:
		room := make([]byte, mem)
		return &block[T]{mem: room, buf: room[:0], recs: make([]Record[T], want)}
	case len(b.recs) < max(n, want/2):
		b.recs = make([]Record[T], want)
	}
	return b
}

// give recycles a block that nothing points at.
func (l *Log[T]) give(b *block[T]) {
	b.prev, b.next = nil, nil
	if b.big {
		l.spares.keep(b)
		return
	}
	l.shelves.give(b)
}

// insert links b behind after; nil puts it first.
func (l *Log[T]) insert(b, after *block[T]) {
	if after == nil {
		b.prev, b.next = nil, l.head
		l.head = b
	} else {
		b.prev, b.next = after, after.next
		after.next = b
	}
	if b.next != nil {
		b.next.prev = b
	} else {
		l.tail = b
	}
}

// unlink takes b out of the chain without touching the cursors.
func (l *Log[T]) unlink(b *block[T]) {
	if b.prev != nil {
		b.prev.next = b.next
	} else {
		l.head = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	} else {
		l.tail = b.prev
	}
}

package carry

// Recycled blocks. A block that was answered is used again, since a new one costs more than all else of a command: it is
// allocated, cleared, and marked by the garbage collector. Blocks of each width have a shelf, so that traffic that changes its
// sizes finds both kinds again. As many are kept as were in use lately, and a few in any case.

const (
	maxFree      = 16                       // recycled blocks kept in any case
	maxFreeBytes = 1536 << 10               // of their room for bytes
	easeSpan     = 320_000_000              // ns in which Ease lets go of two thirds of what was not in use
	widths       = widestBytes / blockBytes // of blocks
)

// shelf is the recycled blocks of one width.
type shelf[T any] struct {
	free *block[T]
	n    int
	used int // blocks of this width in the chain
	most int // of them, lately
}

// shelves is all recycled blocks but big ones.
type shelves[T any] struct {
	of    [widths]shelf[T]
	n     int   // blocks kept
	bytes int   // and their room
	eased int64 // when Ease was called last
}

// shelfOf is the index of the shelf of blocks with so much room.
func shelfOf(mem int) int { return min((mem-1)/blockBytes, widths-1) }

// take returns a recycled block of that width, and counts it, or a new one, as used. nil: there is none.
func (s *shelves[T]) take(mem int) *block[T] {
	f := &s.of[shelfOf(mem)]
	f.used++
	f.most = max(f.most, f.used)
	if f.free == nil {
		return nil
	}
	return s.pop(f)
}

// pop takes a block off its shelf.
func (s *shelves[T]) pop(f *shelf[T]) *block[T] {
	b := f.free
	f.free, b.next = b.next, nil
	f.n--
	s.n--
	s.bytes -= len(b.mem)
	return b
}

// give takes back a block that was in use, to keep it if that is not too much.
func (s *shelves[T]) give(b *block[T]) {
	f := &s.of[shelfOf(len(b.mem))]
	f.used--
	if len(b.mem) > widestBytes || !s.spends(f, 1, len(b.mem)) {
		return // to the garbage collector
	}
	b.reset()
	b.next, f.free = f.free, b
	f.n++
	s.n++
	s.bytes += len(b.mem)
}

// spends says whether what is kept, and so much more of f, is not too much.
func (s *shelves[T]) spends(f *shelf[T], n, bytes int) bool {
	return s.n+n <= maxFree && s.bytes+bytes <= maxFreeBytes || f.used+f.n+n <= f.most
}

// ease lets go of that part, in easeSpan, of what has not been in use.
func (s *shelves[T]) ease(part int64) {
	for i := range s.of {
		f := &s.of[i]
		f.most -= int((int64(f.most-f.used)*part + easeSpan - 1) / easeSpan)
		for f.free != nil && !s.spends(f, 0, 0) {
			s.pop(f)
		}
	}
}

// shed lets go of all.
func (s *shelves[T]) shed() {
	for i := range s.of {
		f := &s.of[i]
		f.free, f.n, f.most = nil, 0, f.used
	}
	s.n, s.bytes = 0, 0
}

// Ease lets go of recycled blocks and buffers little by little when fewer have been in use for a while; to be called now and then,
// with the time on the engine's clock in ns.
func (l *Log[T]) Ease(now int64) {
	part := min(max(now-l.shelves.eased, 0), easeSpan)
	l.shelves.eased = now
	l.shelves.ease(part)
	l.spares.ease(part)
}

// Shed lets go of recycled blocks and buffers.
func (l *Log[T]) Shed() {
	l.shelves.shed()
	l.spares = spares[T]{used: l.spares.used, most: l.spares.used}
}

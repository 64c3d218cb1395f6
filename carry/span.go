package carry

// Span is a published range of one block, or of one big block and the big ones behind it, to be written.
type Span[T any] struct {
	Bytes    []byte // contiguous; stays valid until the next Claim or Cut
	Size     int    // of Bytes, and of what Parts has beside them
	Commands int
	blk      *block[T]
	first    int    // record of blk
	start    int    // its offset there
	from     uint64 // records published before
	quiet    bool
	more     [][]byte // the bytes of big blocks that follow, of one record each; as valid as Bytes
}

const (
	spanBytes  = 256 << 10                // of several blocks, at most
	spanBlocks = spanBytes/BigRequest - 1 // behind the first, at most
)

// lengthen publishes the big blocks that follow l.cur, which s has to its end, as long as they are not too much for one write: a
// write of its own costs more than these bytes. What expects no reply ends the span; a big block that has died is not in the chain any more.
func (l *Log[T]) lengthen(s *Span[T], maxCmds, maxBytes int) {
	s.more = l.parts[:0]
	for len(s.more) < min(maxCmds, spanBlocks) && !s.quiet && l.pub == l.cur.n {
		b := l.cur.next
		if b == nil || !b.big || b.n == 0 || b.quiet > 0 || s.Size+len(b.buf) > maxBytes {
			return
		}
		l.cur.passed = true
		l.cur, l.pub = b, b.n
		s.more = append(s.more, b.buf[:len(b.buf):len(b.buf)])
		s.Size += len(b.buf)
		s.Commands++
	}
}

// Split says that s lies in several parts.
func (s *Span[T]) Split() bool { return len(s.more) > 0 }

// Parts appends to dst what s has from byte n on, in order.
func (s *Span[T]) Parts(dst [][]byte, n int) [][]byte {
	if n < len(s.Bytes) {
		dst = append(dst, s.Bytes[n:])
	}
	n -= len(s.Bytes)
	for _, b := range s.more {
		if n < len(b) {
			dst = append(dst, b[max(n, 0):])
		}
		n -= len(b)
	}
	return dst
}

// Part is what the block at byte n has of s from there on.
func (s *Span[T]) Part(n int) []byte {
	if n < len(s.Bytes) {
		return s.Bytes[n:]
	}
	n -= len(s.Bytes)
	for _, b := range s.more {
		if n < len(b) {
			return b[n:]
		}
		n -= len(b)
	}
	return nil
}

// Left says whether the oldest record in flight that expects a reply, and is one of s, is among the first n bytes of it as a whole;
// true when there is none.
func (l *Log[T]) Left(s *Span[T], n int) bool {
	b, i, at := l.at, l.ack, l.answered
	for b != nil {
		switch {
		case b == l.cur && i == l.pub:
			return true
		case i == b.n:
			b, i = b.next, 0
		case b.recs[i].Frames != 0:
			return s.end(at, &b.recs[i]) <= n
		default:
			i++
			at++
		}
	}
	return true
}

// end is where r, the i-th record that was published, ends in s, in bytes from its start. Not positive: before it.
func (s *Span[T]) end(i uint64, r *Record[T]) int {
	switch {
	case i < s.from || s.Commands == 0:
		return 0
	case i < s.from+uint64(s.Commands-len(s.more)):
		return int(r.off+r.size) - s.start
	}
	end := len(s.Bytes)
	behind := i + 1 - s.from - uint64(s.Commands-len(s.more))
	for _, b := range s.more[:min(behind, uint64(len(s.more)))] { // more there are in a broken log only
		end += len(b)
	}
	return end
}

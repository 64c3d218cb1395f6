package carry

import "fmt"

// Check looks at the whole log for a broken invariant; nil means it is consistent. It costs a walk over all
// records: for tests, and after a fault of our own.
func (l *Log[T]) Check() error {
	var prev *block[T]
	var cmds, bytes, inFlight, flying int
	var used [widths]int
	usedBig, onWire := 0, uint64(0)
	sawAt, sawCur := l.at == nil, l.cur == nil
	acked, published := true, true
	for b := l.head; b != nil; prev, b = b, b.next {
		if b.prev != prev {
			return fmt.Errorf("carry: block chain broken")
		}
		if b.n > len(b.recs) || len(b.buf) > cap(b.buf) {
			return fmt.Errorf("carry: block holds %d records of %d", b.n, len(b.recs))
		}
		if b.back > b.n {
			return fmt.Errorf("carry: %d of %d records did not come back", b.back, b.n)
		}
		if passed := published && b != l.cur; b.passed != passed {
			return fmt.Errorf("carry: block before the cursor is %v, marked %v", passed, b.passed)
		}
		if b.big {
			usedBig += cap(b.mem)
		} else {
			used[shelfOf(len(b.mem))]++
		}
		off, dead, quiet, seq := 0, 0, 0, uint64(0)
		for i := 0; i <= b.n; i++ {
			if b == l.at && i == l.ack {
				sawAt, acked = true, false
			}
			if b == l.cur && i == l.pub {
				if acked {
					return fmt.Errorf("carry: acked passed published")
				}
				sawCur, published = true, false
			}
			if i == b.n {
				break
			}
			r := &b.recs[i]
			if int(r.off) != off {
				return fmt.Errorf("carry: record %d starts at %d, want %d", r.seq, r.off, off)
			}
			if r.seq <= seq {
				return fmt.Errorf("carry: record %d follows %d in one block", r.seq, seq)
			}
			off, seq = off+int(r.size), r.seq
			if r.Frames == 0 {
				quiet++
			}
			if acked {
				continue
			}
			cmds++
			bytes += int(r.size)
			if err := r.check(b, published); err != nil {
				return err
			}
			switch {
			case !published && !r.live():
				dead++
			case published:
				onWire++
				flying += int(r.size)
				if r.Frames != 0 {
					inFlight++
				}
			}
		}
		if off != len(b.buf) {
			return fmt.Errorf("carry: block of %d bytes has records for %d", len(b.buf), off)
		}
		if dead != b.dead || quiet != b.quiet {
			return fmt.Errorf("carry: block counts %d dead and %d quiet, has %d and %d", b.dead, b.quiet, dead, quiet)
		}
	}
	for i, n := range used {
		if f := &l.shelves.of[i]; f.used != n {
			return fmt.Errorf("carry: counts %d blocks of width %d in use, has %d", f.used, i, n)
		}
	}
	if onWire != l.claimed-l.answered {
		return fmt.Errorf("carry: counts %d published and %d acked, has %d between them", l.claimed, l.answered, onWire)
	}
	if usedBig != l.spares.used {
		return fmt.Errorf("carry: counts %d bytes of big blocks in use, has %d", l.spares.used, usedBig)
	}
	if prev != l.tail || !sawAt || !sawCur {
		return fmt.Errorf("carry: a position or the tail lies outside the chain")
	}
	for i := range l.waiting {
		if l.waiting[i].stream == nil {
			cmds++
			bytes += int(l.waiting[i].Rec.size)
		}
	}
	for _, s := range l.holding {
		if !s.held.Load() {
			return fmt.Errorf("carry: a stream in the list of held ones is not held")
		}
		for _, ws := range [2][]Away[T]{s.refused, s.queued} {
			for i := range ws {
				cmds++
				bytes += int(ws[i].Rec.size)
			}
		}
	}
	if cmds != l.cmds || bytes != l.bytes || inFlight != l.inFlight || flying != l.flying {
		return fmt.Errorf("carry: counts %d commands, %d bytes, %d in flight, %d bytes flying; has %d, %d, %d, %d",
			l.cmds, l.bytes, l.inFlight, l.flying, cmds, bytes, inFlight, flying)
	}
	return nil
}

// check looks at one record in the chain that is not acked.
func (r *Record[T]) check(b *block[T], published bool) error {
	switch {
	case !r.live():
	case r.orphaned():
		return fmt.Errorf("carry: record %d waits behind a break of its stream at %d", r.seq, r.Stream.at)
	case published:
	case r.Stream != nil && r.Stream.held.Load():
		return fmt.Errorf("carry: record %d waits in the chain while its stream is held", r.seq)
	case r.ticket != nil && r.ticket.blk != b:
		return fmt.Errorf("carry: the ticket of record %d points elsewhere", r.seq)
	}
	return nil
}

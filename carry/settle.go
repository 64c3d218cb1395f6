package carry

// Why says which rule ended a record that got no answer.
type Why uint8

const (
	WhyNoRetry  Why = iota // NoRetry, and it may have run
	WhyExpired             // its settle-by time passed
	WhyBudget              // its budget is spent
	WhyPoisoned            // its budget is spent and it was sent alone, or it never leaves whole
	WhyBroken              // an earlier record of its Stream failed
	WhyStrict              // an earlier record of the engine failed, in strict order
	WhyRefused             // it was refused, and its Stream went on without it: Frame holds the refusal
	WhySent                // it expects no reply and its last byte was accepted: success
	WhyAsked               // the caller of Settle asked for it
)

// End is one settled record, for the owner to be told after the lock is released.
type End[T any] struct {
	Owner  T
	Stream *Stream[T]
	Why    Why
	Fate   Fate
	Sends  int
	Start  int64
	Frame  []byte // WhyRefused: the refusal; ours
	Skip   int    // WhyRefused: leading frames that are not for the command
}

// end takes the owner out of a record that was just settled. published as in Fate.
func (r *Record[T]) end(why Why, published bool) End[T] {
	e := End[T]{Owner: r.Owner, Stream: r.Stream, Why: why, Fate: r.Fate(published), Sends: r.Sends(), Start: r.Start}
	if published {
		e.Sends++
	}
	if t := r.ticket; t != nil {
		t.blk = nil
	}
	var none T
	r.Owner = none
	return e
}

// tombstone finishes a won Withdraw of a record in the chain.
func (l *Log[T]) tombstone(t *Ticket[T]) Withdrawal {
	b := t.blk
	i := b.find(t.seq)
	r := &b.recs[i]
	published := b.passed || b == l.cur && i < l.pub
	e := r.end(WhyAsked, published)
	w := Withdrawal{Won: true, Flying: published, At: l.claimed, Fate: e.Fate, Sends: e.Sends}
	if published {
		return w
	}
	s := r.Stream
	w.Broke = s != nil && r.maybe && r.Frames != 0 && r.broke()
	l.bury(b) // may move r
	if w.Broke {
		l.failLater(s, l.keep)
	}
	return w
}

// keep stores an outcome for the next Settle or Cut to tell.
func (l *Log[T]) keep(e End[T]) { l.untold = append(l.untold, e) }

// tell passes on what keep stored.
func (l *Log[T]) tell(f func(End[T])) {
	ends := l.untold
	l.untold = nil
	for _, e := range ends {
		f(e)
	}
}

// bury counts one more dead record in b, behind the cursor, and gives room back when it is worth it: the cost of
// compacting is spread over the records that died.
func (l *Log[T]) bury(b *block[T]) {
	b.dead++
	from := 0
	if b == l.cur {
		from = l.pub
	}
	if 2*b.dead >= b.n-from {
		l.clean(b, from)
	}
}

// clean gives back the room of the dead records in b from index from on, and the block when it is empty.
func (l *Log[T]) clean(b *block[T], from int) {
	l.drop(b, from)
	if b.n == 0 && b != l.cur {
		l.unlink(b)
		l.give(b)
	}
}

// each walks the chain from acked to end. f says whether to go on.
func (l *Log[T]) each(f func(b *block[T], r *Record[T], published bool) bool) {
	b, i := l.at, l.ack
	published := true
	for b != nil {
		if b == l.cur && i >= l.pub {
			published = false
		}
		if i == b.n {
			b, i = b.next, 0
			continue
		}
		if !f(b, &b.recs[i], published) {
			return
		}
		i++
	}
}

// Settle ends every record that match picks, wherever it is, except one the reader is delivering at this moment.
// What is published leaves a ghost, what is not will never be sent. A failure breaks the record's Stream: all
// later records of it fail too. f is called under the lock and must only collect.
func (l *Log[T]) Settle(match func(*Record[T]) bool, why Why, f func(End[T])) {
	l.tell(f)
	l.each(func(b *block[T], r *Record[T], published bool) bool {
		w := why
		if r.orphaned() {
			w = WhyBroken
		} else if !r.live() || !match(r) {
			return true
		}
		if !r.claim() {
			return true
		}
		if !published {
			b.dead++ // dropped when the cursor comes by, or below
		}
		r.broke()
		f(r.end(w, published))
		return true
	})
	l.settleAway(match, why, f)
	l.sweepDead()
}

// sweepDead gives back the room of blocks that died as a whole.
func (l *Log[T]) sweepDead() {
	for b := l.cur; b != nil; {
		next := b.next
		if b.dead > 0 {
			b.dead--
			l.bury(b)
		}
		b = next
	}
}

// Pending calls f for every record that nobody has settled, in order of the chain, then those away. For gauges
// and sweeping; f must not keep r.
func (l *Log[T]) Pending(f func(r *Record[T], published bool) bool) {
	more := true
	l.each(func(_ *block[T], r *Record[T], published bool) bool {
		if r.live() {
			more = f(r, published)
		}
		return more
	})
	if more {
		l.pendingAway(func(r *Record[T]) bool { return f(r, false) })
	}
}

// Queued is what is not in flight: records that wait to be published, tombstones and those away included. Unlike
// Held it takes no account of a chunk that is open, so that no record is ever overlooked.
func (l *Log[T]) Queued() (cmds, bytes int) { return l.cmds - l.inFlight, l.bytes - l.flying }

// Blocks is how long the server may hold the oldest record in flight on purpose, in ms.
func (l *Log[T]) Blocks() (ms uint32) {
	l.each(func(_ *block[T], r *Record[T], published bool) bool {
		if published && r.Frames == 0 {
			return true
		}
		if published {
			ms = r.Block
		}
		return false
	})
	return ms
}

// Oldest returns the start time of the oldest record in flight that expects a reply, ghosts included. False:
// none.
func (l *Log[T]) Oldest() (start int64, ok bool) {
	l.each(func(_ *block[T], r *Record[T], published bool) bool {
		if published && r.Frames == 0 {
			return true
		}
		start, ok = r.Start, published
		return false
	})
	return start, ok
}

// Sent is the outcome of a record without reply that Quiet handed out.
func (r *Record[T]) Sent() End[T] {
	e := r.end(WhySent, false)
	e.Sends++
	return e
}

package carry

// Death describes how a session ended, for Cut. The reader and the writer have been joined.
type Death[T any] struct {
	Now     int64
	Last    Span[T] // the last claim
	Written int     // bytes of it that the kernel accepted; when the connection cannot tell exactly, all or none
	Assumed bool    // Written is such an all: what expects no reply cannot be called sent
	Strict  bool    // everything published after a failed record fails as well
	Alone   bool    // this session sent one record alone
	Mute    bool    // it had no answer
	Torn    int64   // how long connections may die in the middle of a record, ns; see tornMost
}

// tornMost is how often a connection may die in the middle of a record, without any answer, before the record may be taken for the
// cause; its budget, if that is larger. What a server or something on the way refuses to take whole would else be begun for ever, and all
// others would wait behind it. But a server that starts, or something that hangs up for a while, tears large records as well, so
// time has to pass too.
const tornMost = 3

// tears counts the deaths in the middle of one record.
type tears struct {
	seq   uint64 // of the record
	n     int
	since int64 // the first one
}

// count notes one more, and says whether it is one too many.
func (t *tears) count(seq uint64, budget int, now, most int64) bool {
	if t.seq != seq {
		*t = tears{seq: seq, since: now}
	}
	t.n++
	return t.n > max(tornMost, budget) && now-t.since >= most
}

// Cut decides every record in [acked, published) after the connection died, oldest first, and sets published back
// to acked: what is kept is rewritten in place on the next connection, before anything unsent. A record left when
// its last byte was accepted by the kernel in this session; then its sends and its maybe bit say so. The first row
// that fits decides:
//
//	settled already                     nothing
//	abandoned                           dropped; if it may have run and is in a Stream, the Stream breaks
//	not left                            kept, uncharged; but see tornMost
//	no reply expected                   settled: it was sent
//	NoRetry and may have run            fails
//	settle-by time passed               fails
//	sends > budget                      fails
//	else                                kept
//
// A failure in a Stream breaks it: its later records, queued ones too, fail by the fate of their own maybe. f is
// called under the lock for each record that ended and must only collect. Cut returns how many were kept that
// had left, that is how many sends are repeated, and whether any record had left.
func (l *Log[T]) Cut(d Death[T], f func(End[T])) (repeats int, left bool) {
	l.reading = false
	l.lead.Store(0)
	next := l.answered // records published before the one at hand
	l.tell(f)
	strict, broke := false, false
	l.each(func(_ *block[T], r *Record[T], published bool) bool {
		if !published {
			return false
		}
		end := d.Last.end(next, r)
		gone := end <= d.Written
		next++
		switch state := r.state(); {
		case r.ticket != nil && r.ticket.seq != r.seq, state == settled, state == deciding && r.ticket == nil:
			return true
		case state == abandoned:
			if (gone || r.maybe) && r.Frames != 0 {
				broke = r.broke() || broke
			}
			return true
		case gone && r.Frames == 0:
			if !r.claim() {
				return true
			}
			if d.Assumed && end > 0 {
				r.sends++
				r.maybe = true
				broke = r.broke() || broke
				f(r.end(WhyNoRetry, false))
				return true
			}
			f(r.end(WhySent, false))
			return true
		}
		if gone {
			r.sends++
			r.maybe = true
			left = true
		}
		why, fail := r.judge(d, gone)
		if !gone && d.Mute && end-int(r.size) < d.Written { // one at most is
			why, fail = WhyPoisoned, l.torn.count(r.seq, int(r.Budget), d.Now, d.Torn)
		} else if gone && r.seq == l.torn.seq {
			l.torn = tears{} // this time it was taken whole
		}
		switch {
		case r.orphaned():
			why, fail = WhyBroken, true
		case !fail && strict:
			why, fail = WhyStrict, true
		}
		if !fail {
			if gone {
				repeats++
			}
			return true
		}
		if r.claim() {
			broke = r.broke() || broke
			strict = d.Strict
			f(r.end(why, false))
		}
		return true
	})
	l.rewind()
	l.settleHolds(f)
	if broke {
		l.Settle(func(*Record[T]) bool { return false }, WhyBroken, f)
	}
	return repeats, left
}

// judge is rows 3 to 7 of the table in Cut, for a record that may wait for an answer.
func (r *Record[T]) judge(d Death[T], gone bool) (why Why, fail bool) {
	switch {
	case !gone:
		return 0, false
	case r.Class == NoRetry:
		return WhyNoRetry, true
	case r.SettleBy != 0 && r.SettleBy <= d.Now:
		return WhyExpired, true
	case r.Spent() && d.Alone:
		return WhyPoisoned, true
	case r.Spent():
		return WhyBudget, true
	}
	return 0, false
}

// rewind sets published back to acked and counts the dead on the way.
func (l *Log[T]) rewind() {
	l.busy = nil
	l.inFlight, l.flying = 0, 0
	l.answered = l.claimed
	if l.at == nil {
		return
	}
	for b := l.at; ; b = b.next {
		b.passed = false
		if b == l.cur {
			break
		}
	}
	from := l.ack
	for b := l.at; b != nil; b = b.next {
		b.dead = 0
		for i := from; i < b.n; i++ {
			if !b.recs[i].live() {
				b.dead++
			}
		}
		from = 0
		if b == l.cur {
			break
		}
	}
	l.cur, l.pub = l.at, l.ack
	l.release()
	l.sweepDead()
}

// settleHolds decides the held streams after a cut. When a record behind the refused ones may have run or failed,
// the refusal is the answer and the stream breaks. When none did, all go again in order.
func (l *Log[T]) settleHolds(f func(End[T])) {
	for i := len(l.holding) - 1; i >= 0; i-- {
		s := l.holding[i]
		if s.torn || !s.due && s.gap() && l.ranBehind(s) {
			l.breakHeld(s, f)
			continue
		}
		if s.due {
			continue
		}
		// What was in flight behind comes before what was held back already.
		queued := s.queued
		s.queued = nil
		l.extractQueued(s)
		s.queued = append(s.queued, queued...)
		s.flying = 1
		s.after = 0 // the one who said when to come back is gone
		l.landed(s, 0)
	}
}

// ranBehind says whether one of those behind the refused records of s may have run. All of s that is in the chain
// while s is held is behind them.
func (l *Log[T]) ranBehind(s *Stream[T]) (ran bool) {
	l.each(func(_ *block[T], r *Record[T], _ bool) bool {
		ran = r.Stream == s && r.maybe && r.live()
		return !ran
	})
	return ran
}

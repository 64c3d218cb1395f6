package carry

import "sync/atomic"

// The state word of a call. Every move is one compare-and-swap, and the move to settled is the only point at
// which an outcome is decided, whoever makes it.
//
//	pending  -> deciding   the reader holds the reply and may touch the command
//	deciding -> settled    the reply was delivered (a record without ticket stays deciding)
//	deciding -> pending    (by way of away) the verdict was to send it again
//	deciding -> wanted     the caller wants to leave; the reader finishes first
//	wanted   -> settled
//	pending  -> abandoned  the caller left; what is on the wire becomes a ghost, what is not a tombstone
//	pending  -> settled    a cut, the sweeper or Close decided
//	deciding -> away       the record left the log, to wait or to go to another one
//	away     -> pending    it came back
//	away     -> abandoned, settled
const (
	settled uint32 = iota // also before the first Append
	pending
	deciding
	wanted
	abandoned
	away // with what Withdraw answers in the bits above, see awayWord

	stateMask = 7
)

// BlockForever, as Record.Block, is a command the server may hold as long as it likes.
const BlockForever = ^uint32(0)

// Record is one command in the log: who owns it, its bytes, and all that decides whether it may be sent again.
// Records live in blocks by value. The exported fields are set by the submitter before Append and not changed
// afterwards, but Owner, which is dropped by whoever settles the record.
type Record[T any] struct {
	Owner    T // what the engine settles; read only after winning the state word
	Stream   *Stream[T]
	SettleBy int64  // on the engine's clock, ns; 0 = none
	Start    int64  // submit time on the engine's clock, ns
	Route    uint64 // opaque
	ticket   *Ticket[T]
	seq      uint64
	off      uint32 // of its bytes in the block
	size     uint32
	own      uint32 // the state word when there is no ticket
	gen      uint32 // of Stream at append
	Block    uint32 // ms that the server may take on purpose; BlockForever = any time
	Budget   uint16 // re-sends that may have executed
	Frames   uint16 // replies on the wire; 0 = none
	Skip     uint16 // leading frames that are not for the command
	sends    uint16 // sends that may have executed
	refusals uint16 // sends that were answered by a refusal
	prefix   uint16 // leading bytes that belong to one redirect only
	hops     uint8  // redirects so far
	prefixed uint8  // frames of prefix
	Class    Class
	Opaque   bool // a refusal proves nothing
	Judge    bool // the command brings its own verdict
	maybe    bool // sticky: some send's last byte was accepted and no refusal answered that send
}

// Ticket is the caller's hold on a record it may withdraw: the state word and the record's place. It lives in
// memory of the caller (a pooled call object).
type Ticket[T any] struct {
	word  uint32
	moved bool // it has been in more than one log
	seq   uint64
	blk   *block[T]
	home  atomic.Pointer[Log[T]]
}

// Attach makes t the ticket of r, before Append. A ticket may be attached again once its outcome was delivered
// by the reader and Reusable says so; after any other outcome a ghost may still point at it, and it must be left to
// the garbage collector.
func (r *Record[T]) Attach(t *Ticket[T]) { r.ticket = t }

// Reusable is for the caller after the reader delivered the outcome. False: the record has been in several logs, and
// one may still look at t under a lock that does not guard it any more.
func (t *Ticket[T]) Reusable() bool { return !t.moved }

func (r *Record[T]) word() *uint32 {
	if r.ticket != nil {
		return &r.ticket.word
	}
	return &r.own
}

func (r *Record[T]) state() uint32 { return atomic.LoadUint32(r.word()) & stateMask }
func (r *Record[T]) move(from, to uint32) bool {
	return atomic.CompareAndSwapUint32(r.word(), from, to)
}

// claim settles the record for a holder of the log's lock: a cut, the sweeper, Close. The sequence number tells
// a record whose ticket has since been used for another command from a live one.
func (r *Record[T]) claim() bool {
	return (r.ticket == nil || r.ticket.seq == r.seq) && r.move(pending, settled)
}

// live is claim without doing it.
func (r *Record[T]) live() bool {
	return (r.ticket == nil || r.ticket.seq == r.seq) && r.state() == pending
}

// Decide claims the right to touch the owner's command, for the reader. False: the caller is gone and the reply
// is a ghost's.
func (r *Record[T]) Decide() bool { return r.move(pending, deciding) }

// Deciding says whether Decide was called and not answered yet by Settle or Undecide.
func (r *Record[T]) Deciding() bool {
	s := r.state()
	return s == deciding || s == wanted
}

// Undecide gives the record back to the log, for a cut to decide. False: the caller wants to leave; it was settled
// for him.
func (r *Record[T]) Undecide() bool {
	if r.move(deciding, pending) {
		return true
	}
	r.Settle()
	return false
}

// Settle ends what Decide began. Without a ticket it has nothing to do: whoever else looks at the record asks for
// pending, and Cut knows that the reader has been joined; so the second atomic store of each reply is saved.
func (r *Record[T]) Settle() {
	if t := r.ticket; t != nil {
		t.blk = nil // an idle ticket keeps no block alive
		atomic.StoreUint32(&t.word, settled)
	}
}

// awayWord is the state word of a record that leaves the chain. It carries what Withdraw has to answer, so that
// the answer and the winning are one step: between two looks the record may have been sent again.
func (r *Record[T]) awayWord() uint32 {
	w := away | uint32(r.Sends())<<4
	if r.maybe {
		w |= 1 << 3
	}
	return w
}

// comeBack moves a record that is away, whose own word holds what depart wrote, to another state. False: its
// caller left, or it has ended.
func (r *Record[T]) comeBack(to uint32) bool {
	from := atomic.LoadUint32(&r.own)
	return from&stateMask == away && atomic.CompareAndSwapUint32(r.word(), from, to)
}

// Sends counts the sends that left, refused ones included, not counting the one in progress.
func (r *Record[T]) Sends() int { return int(r.sends) + int(r.refusals) }

// Charged counts the sends that may have executed.
func (r *Record[T]) Charged() int { return int(r.sends) }

// Refusals counts the sends answered by a refusal, Hops the redirects among them.
func (r *Record[T]) Refusals() int { return int(r.refusals) }

// Hops counts the redirects so far.
func (r *Record[T]) Hops() int { return int(r.hops) }

// Maybe says whether an earlier send may have executed.
func (r *Record[T]) Maybe() bool { return r.maybe }

// NoReply says that the server does not answer it.
func (r *Record[T]) NoReply() bool { return r.Frames == 0 }

// Fate is what can be said of the record if it ended now. published: it is behind the cursor in the running
// session.
func (r *Record[T]) Fate(published bool) Fate {
	if r.maybe || published {
		return MaybeExecuted
	}
	return NotSent
}

// Refused notes that the send in progress was answered by a refusal. ran: it may have executed all the same,
// which charges the budget.
func (r *Record[T]) Refused(ran bool) {
	if ran {
		r.sends++
		r.maybe = true
		return
	}
	r.refusals++
}

// Spent says whether the budget forbids another send.
func (r *Record[T]) Spent() bool { return r.sends > r.Budget }

// Withdrawal is what Withdraw found.
type Withdrawal struct {
	Flying bool   // it was published: a ghost stays on the wire
	At     uint64 // Log.Published at that moment, which tells the session the ghost is in
	Won    bool   // the caller is free; false: an outcome is coming, wait for it
	Fate   Fate
	Sends  int
	// Broke: the record may have run, will not be sent again, and is (or, if it was away, may be) in a Stream,
	// which breaks. Call Settle, with a match that picks nothing, to be told of the later records of it.
	Broke bool
}

// Withdraw is the caller leaving. It takes the lock of the log the record is in. When it wins, nobody touches
// the owner again: a record not yet published becomes a tombstone and is never sent, a published one a ghost
// whose reply is dropped. When it does not win the reader is at work (or was before): the outcome arrives, at
// once or after the decoding, never later.
func (t *Ticket[T]) Withdraw() Withdrawal {
	for {
		switch word := atomic.LoadUint32(&t.word); word & stateMask {
		case pending:
			l := t.home.Load()
			l.Lock()
			// The word first: pending and then still at home means in this log, which it leaves under the lock
			// only. The other way round it may have come into another log in between.
			if atomic.LoadUint32(&t.word) == pending && t.home.Load() == l &&
				atomic.CompareAndSwapUint32(&t.word, pending, abandoned) {
				w := l.tombstone(t)
				l.Unlock()
				return w
			}
			l.Unlock()
		case away:
			w := Withdrawal{Won: true, Fate: NotSent, Sends: int(word >> 4)}
			if word&(1<<3) != 0 {
				w.Fate, w.Broke = MaybeExecuted, true
			}
			if atomic.CompareAndSwapUint32(&t.word, word, abandoned) {
				return w
			}
		case deciding:
			if atomic.CompareAndSwapUint32(&t.word, deciding, wanted) {
				return Withdrawal{}
			}
		default:
			return Withdrawal{}
		}
	}
}

package carry

import "sync/atomic"

// The state word of a call. Every move is one compare-and-swap, and the move to settled is the only point at
// which an outcome is decided, whoever makes it.
//
//	pending  -> deciding   the reader holds the reply and may touch the command
//	deciding -> settled    the reply was delivered
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
	away
)

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
	Budget   uint16 // re-sends that may have executed
	Frames   uint16 // replies on the wire; 0 = none
	Skip     uint16 // leading frames that are not for the command
	sends    uint16 // sends that may have executed
	refusals uint16 // sends that were answered by a refusal
	prefix   uint16 // leading bytes that belong to one redirect only
	hops     uint8  // redirects so far
	prefixed uint8  // frames of prefix
	Class    Class
	Judge    bool // the command brings its own verdict
	maybe    bool // sticky: some send's last byte was accepted and no refusal answered that send
}

// Ticket is the caller's hold on a record it may withdraw: the state word and the record's place. It lives in
// memory of the caller (a pooled call object).
type Ticket[T any] struct {
	word  uint32
	maybe bool // set with sends when the record goes away
	sends uint16
	Tag   uint32 // free for the engine: the index in a batch
	seq   uint64
	blk   *block[T]
	home  atomic.Pointer[Log[T]]
}

// Attach makes t the ticket of r, before Append. A ticket may be attached again once its outcome was delivered
// by the reader; after any other outcome a ghost may still point at it, and it must be left to the garbage
// collector.
func (r *Record[T]) Attach(t *Ticket[T]) { r.ticket = t }

// Ticket returns what Attach set, or nil.
func (r *Record[T]) Ticket() *Ticket[T] { return r.ticket }

func (r *Record[T]) word() *uint32 {
	if r.ticket != nil {
		return &r.ticket.word
	}
	return &r.own
}

func (r *Record[T]) state() uint32 { return atomic.LoadUint32(r.word()) }
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

// Settle ends what Decide began.
func (r *Record[T]) Settle() { atomic.StoreUint32(r.word(), settled) }

// Size is the length of the encoded request in bytes.
func (r *Record[T]) Size() int { return int(r.size) }

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
	Won   bool // the caller is free; false: an outcome is coming, wait for it
	Fate  Fate
	Sends int
}

// Withdraw is the caller leaving. It takes the lock of the log the record is in. When it wins, nobody touches
// the owner again: a record not yet published becomes a tombstone and is never sent, a published one a ghost
// whose reply is dropped. When it does not win the reader is at work (or was before): the outcome arrives, at
// once or after the decoding, never later.
func (t *Ticket[T]) Withdraw() Withdrawal {
	for {
		switch atomic.LoadUint32(&t.word) {
		case pending:
			l := t.home.Load()
			l.Lock()
			if t.home.Load() == l && atomic.CompareAndSwapUint32(&t.word, pending, abandoned) {
				w := l.tombstone(t)
				l.Unlock()
				return w
			}
			l.Unlock()
		case away:
			// maybe and sends were written before the word became away and stay until it leaves it.
			w := Withdrawal{Won: true, Fate: NotSent, Sends: int(t.sends)}
			if t.maybe {
				w.Fate = MaybeExecuted
			}
			if atomic.CompareAndSwapUint32(&t.word, away, abandoned) {
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

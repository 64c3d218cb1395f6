package fdengine

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/fdengine/fullduplex/carry"
)

// batch is one DoBatch: its commands, and the tickets by which it can leave.
type batch struct {
	members []member
	tickets []carry.Ticket[entry] // of a ctx that can end
	errs    []error
	start   int64   // of the first parcel
	own     []error // errs when the caller gave none
	open    atomic.Int64
	dirty   atomic.Bool // something ended otherwise than by the reader: a ghost may point at a ticket
	waiter
}

// member is one command of a batch. Members do not change while their batch is used again for others like it: the
// reader finds them in its cache.
type member struct {
	batch *batch
	i     int
}

func newBatch() any { return &batch{waiter: newWaiter()} }

// Complete makes member a Completion so that an entry can hold it; the engine calls finish.
func (*member) Complete(Command, error) {}

// finish is an outcome that does not come from a reply; the reader tells those by the lot.
func (m *member) finish(err error) {
	m.batch.errs[m.i] = err
	m.batch.dirty.Store(true)
	m.batch.settle(1)
}

// settles counts n outcomes, and says whether they were the last.
func (b *batch) settles(n int) bool { return n > 0 && b.open.Add(-int64(n)) == 0 }

// settle counts n outcomes; the last one wakes the caller.
func (b *batch) settle(n int) {
	if b.settles(n) {
		b.ready <- struct{}{}
	}
}

// DoBatch sends cmds in order, as one caller would, and waits for all of them; errs[i] is the outcome of cmds[i]
// (errs has the length of cmds, or is nil). Each command stands alone: one failure touches no other. They are
// admitted in parcels of at most 1,024 commands or 64 KiB, so that a batch neither starves others nor needs room
// for all at once, and the caller is woken once. ctx as in Do. The error is the first of errs that is not nil.
func (e *Engine) DoBatch(ctx context.Context, cmds []Command, errs []error) error {
	if errs != nil && len(errs) != len(cmds) {
		return e.reject(notSent(nil, fmt.Errorf("fdengine: DoBatch got %d commands and %d errs", len(cmds), len(errs))))
	}
	if len(cmds) == 0 {
		return nil
	}
	b := e.batches.Get().(*batch)
	b.open.Store(1) // ours, until all parcels are in
	b.start = 0
	if b.errs = errs; errs == nil {
		b.own = grow(b.own, len(cmds))
		b.errs = b.own
	}
	b.size(len(cmds), ctx.Done() != nil)
	p := e.parcels.Get().(*parcel)
	for from := 0; from < len(cmds); {
		from = e.pack(ctx, b, p, cmds, from)
		e.send(ctx, b, p)
	}
	e.parcels.Put(p) // before the wait, in which others can use it
	b.settle(1)
	if done := ctx.Done(); done == nil {
		b.wait()
	} else {
		select {
		case <-b.ready:
			b.pass()
		case <-done:
			e.withdrawBatch(b, ctx.Err())
			b.wait()
			for i, err := range b.errs {
				b.errs[i] = leftBy(err, ctx.Err())
			}
		}
	}
	var first error
	for _, err := range b.errs {
		if err != nil {
			first = err
			break
		}
	}
	reusable := len(b.tickets) == 0 || !b.dirty.Load()
	for i := range b.tickets {
		reusable = reusable && b.tickets[i].Reusable()
	}
	b.dirty.Store(false)
	b.errs = nil
	if reusable {
		clear(b.own)
		e.batches.Put(b)
	}
	return first
}

// size makes b fit for n commands. Without leave nobody can withdraw them, and they need no tickets.
func (b *batch) size(n int, leave bool) {
	if len(b.members) < n {
		b.members = make([]member, n)
		for i := range b.members {
			b.members[i] = member{b, i}
		}
	}
	if !leave {
		n = 0
	}
	// Tickets are not cleared: old records of the log may still look at their sequence numbers, under the lock.
	if cap(b.tickets) < n {
		b.tickets = make([]carry.Ticket[entry], n)
	}
	b.tickets = b.tickets[:n]
}

// memberOf is the index of the command of r in its batch.
func memberOf(r *carry.Record[entry]) int { return r.Owner.done.(*member).i }

// grow returns s with length n and zero values.
func grow[S any](s []S, n int) []S {
	if cap(s) < n {
		return make([]S, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// pack prepares the commands from index from on that make up one parcel, and returns where the next one starts.
func (e *Engine) pack(ctx context.Context, b *batch, p *parcel, cmds []Command, from int) int {
	i := from
	for ; i < len(cmds) && !p.full(); i++ {
		rec, err := p.add(ctx, e, cmds[i], &b.members[i])
		if err != nil {
			b.errs[i] = e.reject(err)
			continue
		}
		if len(b.tickets) > 0 {
			rec.Attach(&b.tickets[i])
		}
	}
	return i
}

// send admits what was packed. What is not accepted has its error.
func (e *Engine) send(ctx context.Context, b *batch, p *parcel) {
	all := len(p.recs)
	b.open.Add(int64(all)) // before the first may be told
	n, err := e.admitParcel(ctx, p)
	if n > 0 && b.start == 0 {
		b.start = p.recs[0].Start
	}
	for j := n; j < all; j++ {
		b.errs[memberOf(&p.recs[j])] = e.reject(err)
	}
	b.settle(all - n)
	p.clear()
}

// withdrawBatch takes back what of b is still under way.
func (e *Engine) withdrawBatch(b *batch, cause error) {
	won := 0
	for i := range b.tickets {
		// One that was not admitted has nothing to take back.
		if w := b.tickets[i].Withdraw(); w.Won {
			won++
			b.dirty.Store(true)
			b.errs[i] = e.withdrawn(b.start, nil, w, cause)
		}
	}
	b.settle(won)
}

package fdengine

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

const (
	pieceCommands = 1024
	pieceBytes    = 64 << 10
)

// batch is one DoBatch: its commands, and the tickets by which it can leave.
type batch struct {
	members []member
	tickets []carry.Ticket[entry] // of a ctx that can end
	recs    []carry.Record[entry]
	encs    [][]byte
	scratch []byte
	draft   draft
	errs    []error
	start   int64   // of the first piece
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
// admitted in pieces of at most 1,024 commands or 64 KiB, so that a batch neither starves others nor needs room
// for all at once, and the caller is woken once. ctx as in Do. The error is the first of errs that is not nil.
func (e *Engine) DoBatch(ctx context.Context, cmds []Command, errs []error) error {
	if errs != nil && len(errs) != len(cmds) {
		return e.reject(notSent(nil, fmt.Errorf("fdengine: DoBatch got %d commands and %d errs", len(cmds), len(errs))))
	}
	if len(cmds) == 0 {
		return nil
	}
	b := e.batches.Get().(*batch)
	b.open.Store(1) // ours, until all pieces are in
	b.start = 0
	if b.errs = errs; errs == nil {
		b.own = grow(b.own, len(cmds))
		b.errs = b.own
	}
	b.size(len(cmds), ctx.Done() != nil)
	for from := 0; from < len(cmds); {
		from = e.piece(ctx, b, cmds, from)
	}
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

// piece prepares and admits the commands from index from that make up one piece, and returns where the next one
// starts.
func (e *Engine) piece(ctx context.Context, b *batch, cmds []Command, from int) int {
	if cap(b.scratch) == 0 {
		b.scratch = make([]byte, 0, pieceBytes+carry.BigRequest)
	}
	b.recs, b.encs = b.recs[:0], b.encs[:0]
	buf, size, i := b.scratch[:0], 0, from
	for ; i < len(cmds) && len(b.recs) < pieceCommands && size < pieceBytes; i++ {
		// The capacity keeps a request that is to become a block of its own out of the shared buffer.
		room := min(cap(buf)-len(buf), carry.BigRequest-1)
		if len(b.recs) == cap(b.recs) {
			b.recs = slices.Grow(b.recs, 1) // the new ones are zero
		}
		b.recs = b.recs[:len(b.recs)+1]
		rec := &b.recs[len(b.recs)-1]
		d := &b.draft
		d.rec, d.enc = rec, buf[len(buf):len(buf):len(buf)+room]
		if err := e.prepare(ctx, cmds[i], d); err != nil {
			*rec = carry.Record[entry]{}
			b.recs = b.recs[:len(b.recs)-1]
			b.errs[i] = e.reject(err)
			continue
		}
		if len(d.enc) <= room {
			buf = buf[:len(buf)+len(d.enc)]
		}
		size += len(d.enc)
		rec.Owner = entry{cmds[i], &b.members[i]}
		rec.SettleBy = int64(d.spec.Timeout) // made absolute when it is appended
		if len(b.tickets) > 0 {
			rec.Attach(&b.tickets[i])
		}
		b.encs = append(b.encs, d.enc)
	}
	if len(b.recs) > 0 {
		if err := e.admitPiece(ctx, b, size); err != nil {
			for j := range b.recs {
				b.errs[memberOf(&b.recs[j])] = e.reject(err)
			}
		}
	}
	clear(b.recs)
	clear(b.encs)
	b.draft = draft{}
	return i
}

// admitPiece appends what piece prepared, under one reservation and with one wake.
func (e *Engine) admitPiece(ctx context.Context, b *batch, size int) error {
	l := &e.log
	n := len(b.recs)
	l.Lock()
	if err := e.refuses(nil); err != nil {
		l.Unlock()
		return err
	}
	if n > e.room.cmds || n > 1 && size > e.room.bytes {
		// A piece larger than a limit is split: only a single request may exceed it, alone.
		l.Unlock()
		return e.admitParts(ctx, b)
	}
	if e.room.first != nil || !e.fits(n, size) {
		if err := e.reserve(ctx, n, size); err != nil {
			l.Unlock()
			return notSent(nil, err)
		}
		e.spend(n, size)
		if err := e.refuses(nil); err != nil {
			e.letIn()
			l.Unlock()
			return err
		}
	}
	b.open.Add(int64(n))
	for j := range b.recs {
		r := &b.recs[j]
		timeout := r.SettleBy
		r.SettleBy = 0
		e.append(r, b.encs[j], time.Duration(timeout))
		if b.start == 0 {
			b.start = r.Start
		}
	}
	e.narrow()
	wake := e.parked && e.due() && e.unpark()
	l.Unlock()
	if wake {
		e.signal()
	}
	return nil
}

// admitParts admits a piece that is larger than the limits in parts that fit.
func (e *Engine) admitParts(ctx context.Context, b *batch) error {
	recs, encs := b.recs, b.encs
	defer func() { b.recs, b.encs = recs, encs }()
	for from := 0; from < len(recs); {
		to, size := from+1, len(encs[from])
		for to < len(recs) && to-from < e.room.cmds && size+len(encs[to]) <= e.room.bytes {
			size += len(encs[to])
			to++
		}
		b.recs, b.encs = recs[from:to], encs[from:to]
		if err := e.admitPiece(ctx, b, size); err != nil {
			for j := from; j < len(recs); j++ {
				b.errs[memberOf(&recs[j])] = e.reject(err)
			}
			return nil
		}
		from = to
	}
	return nil
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

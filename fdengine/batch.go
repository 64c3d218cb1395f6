package fdengine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

const (
	pieceCommands = 1024
	pieceBytes    = 64 << 10
)

// batch is one DoBatch: the completion of all its commands, and the tickets by which it can leave.
type batch struct {
	tickets []carry.Ticket[entry]
	in      []bool // admitted
	recs    []carry.Record[entry]
	encs    [][]byte
	scratch []byte
	errs    []error
	start   int64   // of the first piece
	own     []error // errs when the caller gave none
	open    atomic.Int64
	dirty   atomic.Bool // something ended otherwise than by the reader: a ghost may point at a ticket
	ready   chan struct{}
}

func newBatch() any { return &batch{ready: make(chan struct{}, 1)} }

// Complete makes batch a Completion so that an entry can hold it; the engine calls finish.
func (b *batch) Complete(Command, error) {}

func (b *batch) finish(i uint32, err error, clean bool) {
	b.errs[i] = err
	if !clean {
		b.dirty.Store(true)
	}
	b.settle(1)
}

func (b *batch) settle(n int) {
	if n > 0 && b.open.Add(-int64(n)) == 0 {
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
	// Tickets are not cleared: old records of the log may still look at their sequence numbers, under the lock.
	if cap(b.tickets) < len(cmds) {
		b.tickets = make([]carry.Ticket[entry], len(cmds))
	}
	b.tickets, b.in = b.tickets[:len(cmds)], grow(b.in, len(cmds))
	for from := 0; from < len(cmds); {
		from = e.piece(ctx, b, cmds, from)
	}
	b.settle(1)
	if done := ctx.Done(); done == nil {
		<-b.ready
	} else {
		select {
		case <-b.ready:
		case <-done:
			e.withdrawBatch(b, ctx.Err())
			<-b.ready
			for i, err := range b.errs {
				b.errs[i] = leftBy(err, ctx.Err())
			}
		}
	}
	var first error
	reusable := !b.dirty.Load()
	for i, err := range b.errs {
		if first == nil {
			first = err
		}
		reusable = reusable && b.tickets[i].Reusable()
	}
	b.errs = nil
	if reusable {
		clear(b.own)
		e.batches.Put(b)
	}
	return first
}

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
		rec, enc, timeout, err := e.prepare(ctx, cmds[i], buf[len(buf):len(buf):len(buf)+room])
		if err != nil {
			b.errs[i] = e.reject(err)
			continue
		}
		if len(enc) <= room {
			buf = buf[:len(buf)+len(enc)]
		}
		size += len(enc)
		rec.Owner = entry{cmds[i], b}
		rec.SettleBy = int64(timeout) // made absolute when it is appended
		b.tickets[i].Tag = uint32(i)
		rec.Attach(&b.tickets[i])
		b.recs, b.encs = append(b.recs, rec), append(b.encs, enc)
	}
	if len(b.recs) > 0 {
		if err := e.admitPiece(ctx, b, size); err != nil {
			for j := range b.recs {
				b.errs[b.recs[j].Ticket().Tag] = e.reject(err)
			}
		}
	}
	clear(b.recs)
	clear(b.encs)
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
		b.in[r.Ticket().Tag] = true
		e.append(r, b.encs[j], time.Duration(timeout))
		if b.start == 0 {
			b.start = r.Start
		}
	}
	wake := e.unpark()
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
				b.errs[recs[j].Ticket().Tag] = e.reject(err)
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
		if !b.in[i] {
			continue
		}
		if w := b.tickets[i].Withdraw(); w.Won {
			won++
			b.dirty.Store(true)
			b.errs[i] = e.withdrawn(b.start, nil, w, cause)
		}
	}
	b.settle(won)
}

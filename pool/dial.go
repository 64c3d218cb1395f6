package pool

import (
	"context"
	"sync/atomic"
	"time"
)

// attempt is one dial: run by its own goroutine, wanted by one Lease.
type attempt struct {
	caller   context.Context    // of the Lease
	ctx      context.Context    // ends with caller, the dial timeout, or Close
	cancel   context.CancelFunc // releases ctx
	deadline time.Time          // zero = none
	round    int                // failures counted when it began
	phase    atomic.Uint32      // Phase; written by the goroutine
	conn     *Conn              // set once connected; owned by the goroutine until delivered
	result   chan error         // one value, after finished was set; conn belongs to the Lease then if nil

	// Guarded by Pool.mu; only one of the two is ever set.
	finished  bool // the goroutine ended first
	abandoned bool // the Lease left first
}

// dial makes a connection into the place its caller holds. On error the place is free, or will be when the
// dial's goroutine ends.
func (p *Pool) dial(ctx context.Context) (*Conn, error) {
	a := &attempt{caller: ctx, result: make(chan error, 1)}
	if p.opts.DialTimeout > 0 {
		a.deadline = time.Now().Add(p.opts.DialTimeout)
		a.ctx, a.cancel = context.WithDeadline(ctx, a.deadline)
	} else {
		a.ctx, a.cancel = context.WithCancel(ctx)
	}
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		a.cancel()
		p.freePlace()
		return nil, ErrClosed
	}
	p.mu.running++
	p.mu.count.dials++
	a.round = p.mu.failures
	p.mu.Unlock()
	stop := context.AfterFunc(p.ctx, a.cancel)
	defer stop()
	go func() { p.finish(a, p.establish(a)) }()

	select {
	case err := <-a.result:
		return p.delivered(a, err)
	case <-a.ctx.Done():
	}
	p.mu.Lock()
	if a.finished {
		p.mu.Unlock()
		return p.delivered(a, <-a.result)
	}
	a.abandoned = true
	err := p.verdictLocked(a, a.ctx.Err())
	p.mu.Unlock()
	a.cancel()
	return nil, err
}

func (p *Pool) delivered(a *attempt, err error) (*Conn, error) {
	if err != nil {
		return nil, err
	}
	return a.conn, nil
}

// finish ends an attempt, on its goroutine, also when that is dying of a runtime.Goexit. It delivers the
// connection or the error to the Lease; if that is gone, it closes the connection.
func (p *Pool) finish(a *attempt, err error) {
	p.mu.Lock()
	var todo chores
	if err == nil {
		p.succeedLocked(&todo)
	}
	a.finished = !a.abandoned
	switch {
	case a.abandoned:
		err = context.Canceled // counted by the Lease; here it only closes the connection
	case err != nil:
		err = p.verdictLocked(a, err)
	case p.mu.closed:
		err = ErrClosed
	default:
		a.conn.owner = p
	}
	deliver := a.finished
	p.mu.Unlock()

	if err != nil && a.conn != nil {
		_ = a.conn.Abort() // before the place is free: Size counts open sockets
	}
	p.mu.Lock()
	p.mu.running--
	p.mu.dialing--
	if err != nil {
		p.mu.open--
		p.serveLocked(&todo)
	}
	p.endLocked(&todo)
	p.mu.Unlock()
	if deliver {
		a.result <- err // before the cancel: the Lease watches a.ctx too
	}
	a.cancel()
	p.do(todo)
}

// verdictLocked turns the error of a failed attempt into what Lease returns, and counts it. An attempt that
// its caller or Close ended says nothing about the server.
func (p *Pool) verdictLocked(a *attempt, err error) error {
	now := time.Now()
	if ctxErr := ended(a.caller, now); ctxErr != nil {
		p.mu.count.canceled++
		return ctxErr
	}
	if p.mu.closed {
		p.mu.count.canceled++
		return ErrClosed
	}
	ph := Phase(a.phase.Load())
	p.failLocked(ph, a.round)
	if !a.deadline.IsZero() && !now.Before(a.deadline) {
		err = ErrDialTimeout
	}
	return &DialError{Addr: p.opts.Addr, Phase: ph, Err: err}
}

// ended is ctx.Err(), a little ahead of ctx's own timer: sockets may see the same deadline first.
func ended(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok && !now.Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}

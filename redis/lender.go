package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
)

// lender lends engines with a connection each that one caller uses at a time, and keeps those given back for the
// next caller, so that a blocking call starts no goroutine of its own.
type lender struct {
	engine func(pool.Leaser) fdengine.Options
	pool   *pool.Pool
	places chan struct{}  // holds one value per engine that is out
	stop   chan struct{}  // closed by close
	holds  sync.WaitGroup // shutdowns that run; raised under mu while not ended
	mu     struct {
		sync.Mutex
		closed bool
		ended  bool
		free   []*loan        // a stack: the last one is lent first
		all    map[*loan]bool // those whose goroutines may still run
	}
}

// loan is one lent engine.
type loan struct {
	engine *fdengine.Engine
	tether *tether
	since  time.Time // in the free list since
	unfit  bool      // not to be lent again; of the borrower
}

// keepIdle is how long an engine is kept for the next caller.
const keepIdle = 5 * time.Minute

var errNoLent = errors.New("redis: Options.Lent is negative: no connections to lend")

// newLender makes a lender of at most places connections at a time, from a pool of its own.
func newLender(p *pool.Pool, places int, engine func(pool.Leaser) fdengine.Options) *lender {
	l := &lender{engine: engine, pool: p, places: make(chan struct{}, max(places, 0)), stop: make(chan struct{})}
	l.mu.all = map[*loan]bool{}
	return l
}

// take borrows an engine, waiting for a place in the order of the callers. Its errors are NotSent.
func (l *lender) take(ctx context.Context) (*loan, error) {
	if err := ctx.Err(); err != nil {
		return nil, notSent(nil, err)
	}
	if cap(l.places) == 0 {
		return nil, notSent(nil, errNoLent)
	}
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return nil, notSent(nil, ctx.Err())
	case <-l.stop:
		return nil, notSent(fdengine.ErrClosed, nil)
	}
	n, err := l.pick()
	if err != nil {
		<-l.places
	}
	return n, err
}

// pick takes a free engine or starts one.
func (l *lender) pick() (*loan, error) {
	l.mu.Lock()
	if l.mu.closed {
		l.mu.Unlock()
		return nil, notSent(fdengine.ErrClosed, nil)
	}
	if i := len(l.mu.free) - 1; i >= 0 {
		n := l.mu.free[i]
		l.mu.free[i] = nil
		l.mu.free = l.mu.free[:i]
		l.mu.Unlock()
		return n, nil
	}
	l.mu.Unlock()

	n := &loan{tether: &tether{pool: l.pool}}
	e, err := fdengine.New(l.engine(n.tether))
	if err != nil {
		return nil, notSent(nil, err) // not reached: the same options were checked by New
	}
	n.engine = e
	l.mu.Lock()
	closed := l.mu.closed
	if !closed {
		l.mu.all[n] = true
	}
	l.mu.Unlock()
	if closed {
		_ = e.Close()
		<-e.Done()
		return nil, notSent(fdengine.ErrClosed, nil)
	}
	return n, nil
}

// give takes n back; nothing of its borrower is submitted any more. One that is not fit is closed, with its
// connection.
func (l *lender) give(n *loan) {
	n.tether.unpin()
	now := time.Now()
	var end []*loan
	l.mu.Lock()
	for n := range l.mu.all {
		select {
		case <-n.engine.Done():
			delete(l.mu.all, n)
		default:
		}
	}
	for len(l.mu.free) > 0 && now.Sub(l.mu.free[0].since) > keepIdle {
		end = append(end, l.mu.free[0])
		l.mu.free = l.mu.free[1:]
	}
	if n.unfit || l.mu.closed {
		end = append(end, n)
	} else {
		n.since = now
		l.mu.free = append(l.mu.free, n)
	}
	l.mu.Unlock()
	for _, n := range end {
		_ = n.engine.Close()
	}
	<-l.places
}

// engines ends the lending and returns all engines.
func (l *lender) engines() (all []*fdengine.Engine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.closed {
		l.mu.closed = true
		close(l.stop)
	}
	for n := range l.mu.all {
		all = append(all, n.engine)
	}
	return all
}

// hold lends nothing more and keeps end from closing what runs, until the function it returns is called.
func (l *lender) hold() (release func()) {
	l.engines()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.ended {
		return func() {}
	}
	l.holds.Add(1)
	return l.holds.Done
}

// shutdown lends nothing more, waits for the calls that run, until ctx ends, and adds up how they ended. An error that
// several connections have is told once, with their number.
func (l *lender) shutdown(ctx context.Context, sum *fdengine.Report) error {
	var faults []error
	counts := map[string]int{}
	for _, e := range l.engines() {
		r, err := e.Shutdown(ctx)
		sum.Answered += r.Answered
		sum.NotSent += r.NotSent
		sum.MaybeExecuted += r.MaybeExecuted
		if err == nil {
			continue
		}
		if counts[err.Error()]++; counts[err.Error()] == 1 {
			faults = append(faults, err)
		}
	}
	for i, err := range faults {
		faults[i] = fmt.Errorf("redis: %d of the lent connections: %w", counts[err.Error()], err)
	}
	return errors.Join(faults...)
}

// close fails the calls that run and ends all engines, without waiting.
func (l *lender) close() {
	for _, e := range l.engines() {
		_ = e.Close()
	}
}

// end is close, after the shutdowns that run, and waits until goroutines and connections are gone.
func (l *lender) end() {
	l.mu.Lock()
	l.mu.ended = true
	l.mu.Unlock()
	l.holds.Wait()
	l.close()
	for _, e := range l.engines() {
		<-e.Done()
	}
	_ = l.pool.Close()
	<-l.pool.Done()
}

func notSent(class, cause error) error {
	return &fdengine.CallError{Fate: carry.NotSent, Class: class, Cause: cause}
}

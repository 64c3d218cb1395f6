// Package pool owns connections to one address: it dials them (TCP, unix, TLS), lets the binding set up a
// session, lends each to one holder at a time, and closes them. It knows when a connection may be lent again and
// when its server side must be fenced first. It knows nothing about commands, replies or retries; those belong
// to its holders, usually an engine. All of a Pool's state is guarded by its own mutex.
package pool

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Pool is the usual Leaser. All methods are safe from any goroutine.
//
// A connection is dialing, idle or leased; each of the three takes one of Options.Size places. A dial is owned by
// the Lease that started it. A dial that outlives its Lease (a DialFunc that ignores its ctx) keeps its place
// until it returns, so that neither sockets nor goroutines can exceed Size.
type Pool struct {
	opts   Options // with defaults; never changed
	ctx    context.Context
	cancel context.CancelFunc // ends ctx at Close
	done   chan struct{}

	mu struct {
		sync.Mutex
		closed   bool
		finished bool    // done is closed, or about to be
		open     int     // places taken: dialing + idle + leased + closing
		dialing  int     // of these, held by a Lease that has no connection yet, or by its abandoned dial
		closing  int     // of these, given up, in the chores of somebody
		running  int     // dial goroutines
		idle     []*Conn // a stack: the last one is lent first

		waiters  list.List // of *waiter: no place yet, first come first served
		sleepers list.List // of *waiter: has a place, waits for the dial backoff

		failures  int       // consecutive failed rounds of dials
		notBefore time.Time // no dial starts earlier

		fences    []fence
		lastFence uint64

		timer   *time.Timer // reaps idle connections; armed only while there are some
		timerAt time.Time   // zero = not armed

		count counters
	}
}

// New returns a pool that has not dialed yet; it dials only when leased from. The error joins all faults of o.
func New(o Options) (*Pool, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	p := &Pool{opts: o.withDefaults(), done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Close closes the idle connections, aborts dials, and makes waiting and later Leases return ErrClosed. Leased
// connections stay usable; their Put or Remove closes them. It does not wait: see Done. It always returns nil,
// also the second time.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil
	}
	p.mu.closed = true
	var todo chores
	for _, l := range []*list.List{&p.mu.waiters, &p.mu.sleepers} {
		for l.Len() > 0 {
			todo.wakeLocked(l, nil, ErrClosed)
		}
	}
	for _, c := range p.mu.idle {
		p.dropLocked(c, ReasonClosed, &todo)
	}
	p.mu.idle = nil
	p.mu.fences = nil
	p.armLocked()
	p.endLocked(&todo)
	p.mu.Unlock()
	p.cancel()
	p.do(todo)
	return nil
}

// Done is closed once Close was called and the last dial goroutine has ended. It does not wait for leased
// connections.
func (p *Pool) Done() <-chan struct{} { return p.done }

// endLocked notes the end of the pool when nothing of it runs any more.
func (p *Pool) endLocked(todo *chores) {
	if p.mu.closed && p.mu.running == 0 && !p.mu.finished {
		p.mu.finished = true
		todo.done = true
	}
}

// chores is what a change under the lock leaves to be done after the unlock: closing sockets and waking waiters.
type chores struct {
	abort []*Conn
	wake  []*waiter
	done  bool
}

// do does the chores; the lock must not be held. A place is free only when its socket is closed, so that no more
// than Size are ever open.
func (p *Pool) do(todo chores) {
	for len(todo.abort) > 0 {
		closing := todo.abort
		todo.abort = nil
		for _, c := range closing {
			_ = c.Abort()
		}
		p.mu.Lock()
		p.mu.open -= len(closing)
		p.mu.closing -= len(closing)
		p.serveLocked(&todo)
		p.mu.Unlock()
	}
	for _, w := range todo.wake {
		close(w.ready)
	}
	if todo.done {
		close(p.done)
	}
}

// dropLocked gives up c, which must be in no list any more, and with the chores its place.
func (p *Pool) dropLocked(c *Conn, why Reason, todo *chores) {
	p.mu.closing++
	p.mu.count.removed[why]++
	todo.abort = append(todo.abort, c)
}

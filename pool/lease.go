package pool

import (
	"container/list"
	"context"
	"io"
	"time"

	"github.com/fdengine/fullduplex/panics"
)

// waiter is a Lease that waits: for a place or a connection (waiters), or for the backoff (sleepers).
type waiter struct {
	ready chan struct{} // closed when served, after the unlock
	// Guarded by Pool.mu until served, then owned by the waiter.
	elem *list.Element // its place in its list; nil = served
	conn *Conn         // nil with a nil err: a place (waiters), or go on (sleepers)
	err  error
}

// Lease implements Leaser: the idle connection that was used last and is still alive, else a new one. At the
// limit it waits, first come first served. It returns ctx.Err() when ctx ends first, whatever user code it was
// waiting for.
func (p *Pool) Lease(ctx context.Context) (*Conn, error) {
	c, err := p.acquire(ctx)
	for err == nil {
		if c == nil {
			if c, err = p.awaitBackoff(ctx); err == nil && c == nil {
				return p.dial(ctx)
			}
			continue
		}
		why, bad := p.unfit(c)
		if !bad {
			return p.lendIdle(c)
		}
		c, err = p.replace(c, why, true)
	}
	return nil, err
}

// TryLease lends an idle connection that is still alive, if there is one and no fence is pending. It never
// dials and never waits.
func (p *Pool) TryLease() (*Conn, bool) {
	p.mu.Lock()
	var c *Conn
	if p.reusableLocked() {
		c = p.popLocked()
	}
	p.mu.Unlock()
	for c != nil {
		why, bad := p.unfit(c)
		if !bad {
			c, err := p.lendIdle(c)
			return c, err == nil
		}
		c, _ = p.replace(c, why, false)
	}
	return nil, false
}

// acquire returns an idle connection, not yet examined, or nil and a place to dial into.
func (p *Pool) acquire(ctx context.Context) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if p.reusableLocked() { // then nobody waits
		c := p.popLocked()
		p.mu.Unlock()
		return c, nil
	}
	w := &waiter{ready: make(chan struct{})}
	w.elem = p.mu.waiters.PushBack(w)
	var todo chores
	p.serveLocked(&todo)
	p.mu.Unlock()
	p.do(todo)
	if p.opts.FailWhenFull && p.withdraw(w) {
		return nil, ErrFull
	}
	select {
	case <-w.ready:
		return w.conn, w.err
	case <-ctx.Done():
	}
	if !p.withdraw(w) { // served at the same moment: what was given goes back
		p.giveBack(w)
	}
	return nil, ctx.Err()
}

// withdraw takes w out of the waiters; false if it has been served.
func (p *Pool) withdraw(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.elem == nil {
		return false
	}
	p.mu.waiters.Remove(w.elem)
	return true
}

// giveBack returns what a waiter was served after its ctx had ended.
func (p *Pool) giveBack(w *waiter) {
	switch {
	case w.err != nil:
	case w.conn != nil:
		p.shelve(w.conn, w.conn.since)
	default:
		p.freePlace()
	}
}

// freePlace gives up the place of a Lease that made no connection.
func (p *Pool) freePlace() {
	p.mu.Lock()
	var todo chores
	p.mu.open--
	p.mu.dialing--
	p.serveLocked(&todo)
	p.mu.Unlock()
	p.do(todo)
}

// serveLocked hands what is free to those who wait: an idle connection to the oldest sleeper, whose place
// becomes free, then to the oldest waiter; a free place to the oldest waiter. While fences are pending nobody gets
// an idle connection, and at the limit the oldest idle one makes room.
func (p *Pool) serveLocked(todo *chores) {
	if p.mu.closed {
		return
	}
	waiting := &p.mu.waiters
	for {
		switch reuse := p.reusableLocked(); {
		case reuse && p.mu.sleepers.Len() > 0:
			p.mu.open--
			p.mu.dialing--
			todo.wakeLocked(&p.mu.sleepers, p.popLocked(), nil)
		case reuse && waiting.Len() > 0:
			todo.wakeLocked(waiting, p.popLocked(), nil)
		case waiting.Len() > 0 && p.mu.open < p.opts.Size:
			p.mu.open++
			p.mu.dialing++
			todo.wakeLocked(waiting, nil, nil)
		case waiting.Len() > p.mu.closing && len(p.mu.idle) > 0:
			p.dropLocked(p.takeIdleLocked(0), ReasonFence, todo)
			p.armLocked()
		default:
			return
		}
	}
}

// wakeLocked serves the oldest waiter of l.
func (todo *chores) wakeLocked(l *list.List, c *Conn, err error) {
	w := l.Remove(l.Front()).(*waiter)
	w.elem, w.conn, w.err = nil, c, err
	todo.wake = append(todo.wake, w)
}

// reusableLocked says whether an idle connection may be lent.
func (p *Pool) reusableLocked() bool {
	return len(p.mu.idle) > 0 && len(p.mu.fences) == 0
}

// popLocked takes the idle connection that was used last.
func (p *Pool) popLocked() *Conn {
	last := len(p.mu.idle) - 1
	c := p.mu.idle[last]
	p.mu.idle[last] = nil
	p.mu.idle = p.mu.idle[:last]
	p.armLocked()
	return c
}

// unfit says why c, just taken from the idle ones, must not be lent. It does I/O that does not block (see peek).
func (p *Pool) unfit(c *Conn) (why Reason, bad bool) {
	now := time.Now()
	switch {
	case expired(now, c.created, p.opts.MaxAge):
		return ReasonAge, true
	case expired(now, c.since, p.opts.IdleTimeout):
		return ReasonIdle, true
	}
	err := panics.Catch("conn.Read", func() error { return peek(c.raw) }) // the connection may be anybody's
	switch err {
	case nil:
		return 0, false
	case io.EOF:
		return ReasonPeerClosed, true
	case errStray:
		return ReasonStray, true
	default:
		return reasonOf(err), true
	}
}

// lendIdle makes c, taken from the idle ones and found alive, a loan.
func (p *Pool) lendIdle(c *Conn) (*Conn, error) {
	p.mu.Lock()
	if p.mu.closed {
		var todo chores
		p.dropLocked(c, ReasonClosed, &todo)
		p.mu.Unlock()
		p.do(todo)
		return nil, ErrClosed
	}
	p.mu.count.reuses++
	p.mu.Unlock()
	return c.lend(), nil
}

// replace closes c, taken from the idle ones, and returns the next idle connection. When there is none it
// returns nil, and keeps c's place for the caller to dial into if keep is set.
func (p *Pool) replace(c *Conn, why Reason, keep bool) (*Conn, error) {
	_ = c.Abort()
	p.mu.Lock()
	var todo chores
	p.mu.count.removed[why]++
	var next *Conn
	var err error
	switch {
	case p.mu.closed:
		err = ErrClosed
		p.mu.open--
	case p.reusableLocked():
		next = p.popLocked()
		p.mu.open--
	case keep:
		p.mu.dialing++
	default:
		p.mu.open--
	}
	p.serveLocked(&todo)
	p.mu.Unlock()
	p.do(todo)
	return next, err
}

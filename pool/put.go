package pool

import (
	"context"
	"time"

	"github.com/fdengine/fullduplex/panics"
)

// Put implements Leaser. It runs OnPut, clears the deadlines, and keeps the connection for the next Lease,
// unless OnPut failed, bytes are left in Unread, it is older than MaxAge, more than MaxIdle would be idle, or the
// pool is closed. It blocks as long as OnPut does, which is cut off by DialTimeout and by Close.
//
// A Put or Remove of a loan that is already over, or of another pool's connection, does nothing but count in
// Stats.Ignored: the caller cannot harm the next holder or the limit, and the first return stands.
func (p *Pool) Put(c *Conn) {
	if !p.takeBack(c) {
		return
	}
	if why, cause, bad := p.release(c); bad {
		p.discard(c, why, cause)
		return
	}
	p.shelve(c, time.Now())
}

// Remove implements Leaser. It closes the raw socket, which never blocks, then frees the place.
func (p *Pool) Remove(c *Conn, why error) {
	if p.takeBack(c) {
		p.discard(c, reasonOf(why), why)
	}
}

// takeBack ends the loan c; false if c is not a running loan of p.
func (p *Pool) takeBack(c *Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c == nil || c.owner != p || c.returned {
		p.mu.count.ignored++
		return false
	}
	c.returned = true
	return true
}

// release prepares c for being idle, or says why it cannot be. cause is set when a fence may be needed.
func (p *Pool) release(c *Conn) (why Reason, cause error, bad bool) {
	marked := c.ShouldHandoff()
	c.Gather(1)
	switch {
	case p.ctx.Err() != nil:
		return ReasonClosed, nil, true
	case p.opts.OnPut != nil:
		if err := p.onPut(c); err != nil {
			return ReasonOnPut, err, true
		}
		if marked {
			c.handoff.Store(false)
			p.mu.Lock()
			p.mu.count.handoffs++
			p.mu.Unlock()
		}
	case marked:
		return ReasonHandoff, nil, true
	}
	if len(c.Unread) > 0 {
		return ReasonStray, nil, true
	}
	if expired(time.Now(), c.created, p.opts.MaxAge) {
		return ReasonAge, nil, true
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return reasonOf(err), nil, true
	}
	return 0, nil, false
}

// onPut runs the hook within the dial timeout; Close cuts its I/O off.
func (p *Pool) onPut(c *Conn) error {
	if p.opts.DialTimeout > 0 {
		if err := c.SetDeadline(time.Now().Add(p.opts.DialTimeout)); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(p.ctx, func() { _ = c.Abort() })
	defer stop()
	return panics.Isolate("OnPut", func() error { return p.opts.OnPut(c) })
}

// discard closes c, whose loan is over, and frees its place.
func (p *Pool) discard(c *Conn, why Reason, cause error) {
	p.mu.Lock()
	var todo chores
	p.dropLocked(c, why, &todo)
	p.fenceLocked(c, cause)
	p.mu.Unlock()
	p.do(todo)
}

// shelve makes c idle, since the given time, and serves who waits.
func (p *Pool) shelve(c *Conn, since time.Time) {
	p.mu.Lock()
	var todo chores
	if p.mu.closed {
		p.dropLocked(c, ReasonClosed, &todo)
	} else {
		c.since = since
		p.mu.idle = append(p.mu.idle, c)
		p.serveLocked(&todo)
		if len(p.mu.idle) > p.opts.MaxIdle {
			p.dropLocked(p.takeIdleLocked(0), ReasonExcess, &todo)
		}
		p.armLocked()
	}
	p.mu.Unlock()
	p.do(todo)
}

package pool

import (
	"slices"
	"time"
)

// expired says whether limit has passed since t; a zero limit never does.
func expired(now, t time.Time, limit time.Duration) bool { return limit > 0 && now.Sub(t) >= limit }

// takeIdleLocked removes the idle connection at i, counted from the one idle longest.
func (p *Pool) takeIdleLocked(i int) *Conn {
	c := p.mu.idle[i]
	p.mu.idle = slices.Delete(p.mu.idle, i, i+1)
	return c
}

// expiry is when c, idle, must be closed; zero = never.
func (p *Pool) expiry(c *Conn) time.Time {
	var at time.Time
	if p.opts.IdleTimeout > 0 {
		at = c.since.Add(p.opts.IdleTimeout)
	}
	if p.opts.MaxAge > 0 {
		if end := c.created.Add(p.opts.MaxAge); at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}

// armLocked keeps the one timer right after a change of the idle connections: stopped when there are none, and
// not later than the expiry of the newest. One that fires early finds nothing and is armed again.
func (p *Pool) armLocked() {
	n := len(p.mu.idle)
	if n == 0 {
		if p.mu.timer != nil {
			p.mu.timer.Stop()
			p.mu.timerAt = time.Time{}
		}
		return
	}
	p.armForLocked(p.expiry(p.mu.idle[n-1]))
}

func (p *Pool) armForLocked(at time.Time) {
	if at.IsZero() || !p.mu.timerAt.IsZero() && !at.Before(p.mu.timerAt) {
		return
	}
	p.mu.timerAt = at
	if p.mu.timer == nil {
		p.mu.timer = time.AfterFunc(time.Until(at), p.reap)
		return
	}
	p.mu.timer.Reset(time.Until(at))
}

// reap closes the idle connections whose time has come; the timer calls it on a goroutine of its own.
func (p *Pool) reap() {
	now := time.Now()
	p.mu.Lock()
	var todo chores
	p.mu.timerAt = time.Time{}
	for i := 0; i < len(p.mu.idle); {
		c := p.mu.idle[i]
		why := ReasonIdle
		switch {
		case expired(now, c.created, p.opts.MaxAge):
			why = ReasonAge
		case !expired(now, c.since, p.opts.IdleTimeout):
			p.armForLocked(p.expiry(c))
			i++
			continue
		}
		p.dropLocked(p.takeIdleLocked(i), why, &todo)
	}
	p.mu.Unlock()
	p.do(todo)
}

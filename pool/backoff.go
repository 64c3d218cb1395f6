package pool

import (
	"context"
	"math/rand/v2"
	"time"
)

// awaitBackoff waits, with a place held, until a dial may start; nil, nil means now. When an idle connection
// turns up first it is returned and the place is given up, and so it is with an error. A dial that succeeds
// elsewhere ends the wait.
func (p *Pool) awaitBackoff(ctx context.Context) (*Conn, error) {
	for {
		p.mu.Lock()
		wait := time.Until(p.mu.notBefore)
		if wait <= 0 || p.mu.closed {
			p.mu.Unlock()
			return nil, nil // dial looks at closed
		}
		w := &waiter{ready: make(chan struct{})}
		w.elem = p.mu.sleepers.PushBack(w)
		var todo chores
		p.serveLocked(&todo) // a connection may have become idle since the place was given
		p.mu.Unlock()
		p.do(todo)

		timer := time.NewTimer(wait)
		select {
		case <-w.ready:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()

		p.mu.Lock()
		if w.elem != nil {
			p.mu.sleepers.Remove(w.elem)
			w.elem = nil
		}
		p.mu.Unlock()
		if w.err != nil {
			p.freePlace()
			return nil, w.err
		}
		if err := ctx.Err(); err != nil {
			p.giveBack(w)
			return nil, err
		}
		if w.conn != nil {
			return w.conn, nil
		}
	}
}

// failLocked counts a failed dial that began when round failures had been counted. Dials that ran side by side
// fail as one round: ten at once are no better evidence than one.
func (p *Pool) failLocked(ph Phase, round int) {
	p.mu.count.failures[ph]++
	if round != p.mu.failures {
		return
	}
	p.mu.failures++
	p.mu.notBefore = time.Now().Add(jitter(backoffBound(p.opts.BackoffMin, p.opts.BackoffMax, p.mu.failures)))
}

// succeedLocked ends the backoff, also for those who sleep in it.
func (p *Pool) succeedLocked(todo *chores) {
	p.mu.failures = 0
	p.mu.notBefore = time.Time{}
	for p.mu.sleepers.Len() > 0 {
		todo.wakeLocked(&p.mu.sleepers, nil, nil)
	}
}

// backoffBound is min(hi, lo<<n) without overflow.
func backoffBound(lo, hi time.Duration, n int) time.Duration {
	for range n {
		if lo >= hi/2 {
			return hi
		}
		lo *= 2
	}
	return min(lo, hi)
}

// jitter is uniform over [0, bound].
func jitter(bound time.Duration) time.Duration { return rand.N(bound + 1) }

package proxy

import (
	"errors"
	"os"
	"time"
)

// step is what a lane's writer does next: write b, cut the link, end it in a way, or wait.
type step struct {
	b       []byte
	cut     bool
	end     ending
	changed <-chan struct{}
	wait    time.Duration // bounds the wait; 0: it is not bounded
}

// write empties the queue until the lane has ended, and tells dst how.
func (n *lane) write() {
	defer n.change(func() { n.mu.over = true })
	for {
		switch s := n.next(); {
		case s.b != nil:
			if !n.send(s.b) {
				return
			}
		case s.cut:
			n.link.Cut()
		case s.end == withFIN:
			_ = n.dst.CloseWrite() // fails when dst is gone, which its reader sees
			return
		case s.end == withRST:
			reset(n.dst)
			return
		case s.end == silently:
			return
		default:
			await(s.changed, s.wait)
		}
	}
}

// next decides and takes what is to be written from the queue.
func (n *lane) next() step {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &n.mu
	s := step{changed: m.changed}
	due := m.endDue
	switch {
	case m.frozen:
		return s
	case m.limit >= 0 && m.forwarded >= m.limit:
		s.cut = true
		return s
	case len(m.queue) > 0:
		due = m.queue[0].due
		if m.perDrip > 0 && due.Before(m.next) {
			due = m.next
		}
	case m.end == open:
		return s
	}
	now := time.Now()
	if s.wait = due.Sub(now); s.wait > 0 {
		return s
	}
	if len(m.queue) == 0 {
		s.end = m.end
		return s
	}
	b := m.queue[0].b
	size := len(b)
	if m.perDrip > 0 {
		size = min(size, m.perDrip)
		m.next = now.Add(m.every)
	}
	if m.limit >= 0 {
		size = int(min(int64(size), m.limit-m.forwarded))
	}
	if s.b = b[:size]; size == len(b) {
		m.queue[0] = chunk{}
		m.queue = m.queue[1:]
	} else {
		m.queue[0].b = b[size:]
	}
	m.queued -= size
	return s
}

// send writes and counts. It returns false when dst is gone.
func (n *lane) send(b []byte) bool {
	sent, err := n.dst.Write(b)
	n.total.Add(int64(sent))
	// The only deadline there is comes from void, which has said already how the lane ends.
	gone := err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	n.change(func() {
		n.mu.forwarded += int64(sent)
		if gone {
			n.mu.deaf, n.mu.queue, n.mu.queued = true, nil, 0
		}
	})
	if gone {
		n.back.sourceIsGone()
	}
	return !gone
}

// sourceIsGone is told when a write to src has failed. The reader finds out by itself, perhaps by what looks like a
// clean end, or has seen such an end before.
func (n *lane) sourceIsGone() {
	late := false
	n.change(func() {
		if n.mu.srcGone = true; n.mu.end == withFIN && !n.mu.deaf {
			n.mu.end, late = withRST, n.mu.over
		}
	})
	if late {
		reset(n.dst)
	}
}

// await waits for a change, or for a time.
func await(changed <-chan struct{}, wait time.Duration) {
	if wait <= 0 {
		<-changed
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	}
}

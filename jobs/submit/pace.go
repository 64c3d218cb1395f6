package submit

import (
	"context"
	"time"
)

// maxBurst is how much lost time a pacer makes up for at once: after a longer stall the rate is kept from then
// on, instead of the backlog being thrown at a server that has just come back.
const maxBurst = 100 * time.Millisecond

// pacer spaces calls evenly. The zero value does not wait. One goroutine.
type pacer struct {
	gap time.Duration
	due time.Time // when the next call is due
}

func newPacer(perSecond float64) *pacer {
	if perSecond <= 0 {
		return &pacer{}
	}
	return &pacer{gap: time.Duration(float64(time.Second) / perSecond)}
}

// wait returns when the next job may go, or with ctx's error. It sleeps in steps of a millisecond at least, so
// that a high rate goes out in small bursts and costs no timer per job.
func (p *pacer) wait(ctx context.Context) error {
	if p.gap == 0 {
		return nil
	}
	now := time.Now()
	if early := now.Add(-maxBurst); p.due.Before(early) {
		p.due = now // the first call, or a stall
	}
	if ahead := p.due.Sub(now); ahead >= time.Millisecond {
		t := time.NewTimer(ahead)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.due = p.due.Add(p.gap)
	return nil
}

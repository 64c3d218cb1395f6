package main

import (
	"context"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/jobs/submit"
)

// meter is a target that measures how long each job of another takes, from Submit to Done.
type meter struct {
	submit.Target
	taken histogram
}

func newMeter(t submit.Target) *meter { return &meter{Target: t} }

// stamp is what a meter remembers of one ticket.
type stamp struct {
	m    *meter
	own  any // the target's carrier
	at   time.Time
	done submit.Done
}

// Submit implements submit.Target.
func (m *meter) Submit(ctx context.Context, job submit.Job, t *submit.Ticket, done submit.Done) error {
	s, _ := t.Carrier.(*stamp)
	if s == nil {
		s = &stamp{m: m}
	}
	s.at, s.done = time.Now(), done
	t.Carrier = s.own
	err := m.Target.Submit(ctx, job, t, s)
	if err != nil {
		s.own, t.Carrier = t.Carrier, s
	}
	return err
}

// Done implements submit.Done.
func (s *stamp) Done(t *submit.Ticket, err error) {
	s.m.taken.add(time.Since(s.at))
	done := s.done
	s.own, t.Carrier, s.done = t.Carrier, s, nil
	done.Done(t, err)
}

// histogram counts durations in classes of about 3 % width. Any number of goroutines.
type histogram struct{ n [64 << steps]atomic.Int64 }

const steps = 5 // classes per doubling, as a power of 2

func (h *histogram) add(d time.Duration) { h.n[class(uint64(max(0, d)))].Add(1) }

func class(v uint64) int {
	if v < 1<<steps {
		return int(v)
	}
	e := bits.Len64(v) - steps - 1
	return (e+1)<<steps + int(v>>e) - 1<<steps
}

// top is the largest duration of a class.
func top(c int) time.Duration {
	if c < 1<<steps {
		return time.Duration(c)
	}
	e := c>>steps - 1
	return time.Duration((uint64(c&(1<<steps-1)+1<<steps)+1)<<e - 1)
}

// quantile is what a share q of the durations does not exceed, to the width of a class; 0 without any.
func (h *histogram) quantile(q float64) time.Duration {
	var all int64
	for i := range h.n {
		all += h.n[i].Load()
	}
	want := max(1, int64(q*float64(all)+0.999999))
	for i := range h.n {
		if want -= h.n[i].Load(); want <= 0 {
			return top(i)
		}
	}
	return 0
}

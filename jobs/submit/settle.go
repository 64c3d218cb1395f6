package submit

import (
	"context"
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/carry"
)

// ticket returns a free one, making no more than the window. Outcomes that have come in are booked first. When
// all are out it waits until a quarter of the window is back, so that the next jobs go out in a burst and not
// one by one.
func (r *Run) ticket(ctx context.Context) (*Ticket, error) {
	for {
		if n := len(r.free); n > 0 {
			t := r.free[n-1]
			r.free = r.free[:n-1]
			return t, nil
		}
		if err := r.collect(max(1, r.o.Window/4)); err != nil {
			return nil, err
		}
		if len(r.free) > 0 {
			continue
		}
		if r.made < r.o.Window {
			r.made++
			return new(Ticket), nil
		}
		select {
		case <-r.desk.wake:
		case <-r.tick:
			if err := r.keepUp(); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ErrInterrupted
		}
	}
}

// collect books the outcomes that have come in and frees their tickets. It returns ErrHopeless when one of them
// was, and the error of the report.
func (r *Run) collect(need int) error {
	from := len(r.free)
	r.free = r.desk.collect(r.free, need)
	var first error
	for _, t := range r.free[from:] {
		r.book(t)
		if t.err == nil {
			continue
		}
		r.why.add(t.fate, t.err)
		err := r.notes.write(t)
		if err == nil && t.fate != carry.Answered && r.o.Hopeless(t.err) {
			err = fmt.Errorf("%w: %w", ErrHopeless, t.err)
		}
		if first == nil {
			first = err
		}
		t.err = nil // keeps nothing alive
	}
	return first
}

// book enters one outcome wherever it counts.
func (r *Run) book(t *Ticket) {
	for len(r.parts) <= t.Traits.Part {
		r.parts = append(r.parts, Account{})
	}
	part := &r.parts[t.Traits.Part]
	part.Accepted++
	part.settle(t)
	if r.o.Ledger != nil {
		r.o.Ledger.settled(t)
	}
	if r.o.Journal != nil {
		r.record(t)
	}
}

// settleAll waits until every accepted job is settled and booked, or ctx ends; the first error of collect.
func (r *Run) settleAll(ctx context.Context) error {
	var first error
	for {
		had := len(r.free)
		err := errors.Join(r.collect(max(1, r.made-had)), r.flush())
		if first == nil {
			first = err
		}
		if len(r.free) == r.made {
			return first
		}
		if len(r.free) > had {
			continue // a collector that got something has not asked for a call
		}
		select {
		case <-r.desk.wake:
		case <-r.tick:
		case <-ctx.Done():
			return first
		}
	}
}

// drain is settleAll for an interrupted run, within Options.Drain.
func (r *Run) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), max(0, r.o.Drain))
	defer cancel()
	return r.settleAll(ctx)
}

// shutdown has the target settle what is left and books it. Whatever is still open then is a defect of the
// target, and said.
func (r *Run) shutdown(to Target) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleGrace)
	defer cancel()
	open := r.made - len(r.free)
	if open > 0 { // the time for answers has passed
		cancel()
	}
	err := to.Shutdown(ctx)
	if open > 0 {
		if errors.Is(err, context.Canceled) {
			err = nil // our own word
		}
		err = errors.Join(fmt.Errorf("%w: %d jobs, %v after the interruption", ErrUnanswered, open, max(0, r.o.Drain)), err)
	}
	wait, stop := context.WithTimeout(context.Background(), settleGrace)
	defer stop()
	err = errors.Join(err, r.settleAll(wait))
	r.desk.stop()
	if open = r.made - len(r.free); open > 0 {
		err = errors.Join(err, fmt.Errorf("%d jobs were never settled by the target", open))
	}
	return err
}

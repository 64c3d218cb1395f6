package target

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
)

// spread is several targets that share the jobs: each job goes to the one for which the hash of target name and job
// is highest. So a job always goes to the same one, whatever order they are given in, and when one is added or taken
// away only its own jobs move.
type spread struct {
	ts    []Target
	seeds []uint64 // hashes of the names
}

func newSpread(ts []Target) *spread {
	s := &spread{ts: ts}
	for _, t := range ts {
		s.seeds = append(s.seeds, xxhash.Sum64String(t.Parts()[0].Name))
	}
	return s
}

// choose returns the index of a job's target: by its id, or by its line when it brought none.
func choose(seeds []uint64, job submit.Job) int {
	var line [8]byte
	what := job.ID
	if !job.Own {
		binary.LittleEndian.PutUint64(line[:], uint64(job.Line))
		what = line[:]
	}
	best, high := 0, uint64(0)
	var d xxhash.Digest
	for i, seed := range seeds {
		d.ResetWithSeed(seed)
		_, _ = d.Write(what) // a hash does not fail
		if h := d.Sum64(); i == 0 || h > high {
			best, high = i, h
		}
	}
	return best
}

// Traits implements submit.Target.
func (s *spread) Traits(job submit.Job) submit.Traits {
	i := choose(s.seeds, job)
	t := s.ts[i].Traits(job)
	t.Part = i
	return t
}

// carriers keeps the carrier of each target for one ticket, so that none is thrown away when the ticket goes to
// another target next time.
type carriers struct {
	of   []any
	part int
	done submit.Done
}

// Submit implements submit.Target.
func (s *spread) Submit(ctx context.Context, job submit.Job, t *submit.Ticket, done submit.Done) error {
	c, _ := t.Carrier.(*carriers)
	if c == nil {
		c = &carriers{of: make([]any, len(s.ts))}
	}
	c.part, c.done = t.Traits.Part, done
	t.Carrier = c.of[c.part]
	err := s.ts[c.part].Submit(ctx, job, t, c)
	if err != nil {
		c.back(t)
	}
	return err
}

// Done implements submit.Done.
func (c *carriers) Done(t *submit.Ticket, err error) {
	done := c.done
	c.back(t)
	done.Done(t, err)
}

func (c *carriers) back(t *submit.Ticket) {
	c.of[c.part], t.Carrier, c.done = t.Carrier, c, nil
}

// Shutdown implements submit.Target.
func (s *spread) Shutdown(ctx context.Context) error {
	return s.each(func(t Target) error { return t.Shutdown(ctx) })
}

// ReadBack implements Target.
func (s *spread) ReadBack(ctx context.Context, found func(id, queue, payload []byte)) error {
	for _, t := range s.ts {
		if err := t.ReadBack(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

// Parts implements Target.
func (s *spread) Parts() []Part {
	var ps []Part
	for _, t := range s.ts {
		ps = append(ps, t.Parts()...)
	}
	return ps
}

// Engine implements Target.
func (s *spread) Engine() fdengine.Stats {
	var sum fdengine.Stats
	for _, t := range s.ts {
		e := t.Engine()
		sum.Accepted += e.Accepted
		sum.Settled += e.Settled
		sum.Answered += e.Answered
		sum.NotSent += e.NotSent
		sum.Maybe += e.Maybe
		sum.Sent += e.Sent
		sum.Replies += e.Replies
		sum.Writes += e.Writes
		sum.Reads += e.Reads
		sum.Replays += e.Replays
		sum.Refusals += e.Refusals
		sum.Sessions += e.Sessions
		sum.Cuts += e.Cuts
	}
	return sum
}

// Close implements Target.
func (s *spread) Close() error { return s.each(Target.Close) }

// each calls f for all at once, since each may take its time, and returns all errors.
func (s *spread) each(f func(Target) error) error {
	errs := make(chan error, len(s.ts))
	for _, t := range s.ts {
		go func() { errs <- f(t) }()
	}
	var all []error
	for range s.ts {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

package target

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/redis"
)

// pageSize is how many entries one XRANGE asks for: large, since a server may walk the stream from its start to
// find the first of them.
const pageSize = 10_000

// stream is a Redis stream. Submit may be called from several goroutines.
type stream struct {
	c       *redis.Client
	o       redis.Options
	name    string
	head    []byte
	retries int
	resent  atomic.Int64 // sends beyond the first of answered jobs
	before  string       // the last entry when the target was opened
	after   completions
}

func openStream(ctx context.Context, addr, name string, o Options) (*stream, error) {
	ro, err := redis.ParseURL(addr)
	if err != nil {
		return nil, err
	}
	ro.Engine.MaxOutage = o.MaxOutage
	c, err := redis.New(ro)
	if err != nil {
		return nil, err
	}
	s := &stream{c: c, o: ro, name: name, head: head(name), retries: o.Retries}
	p := page{last: "0-0"}
	p.newest(name)
	if err := c.Do(ctx, &p); err != nil {
		return nil, errors.Join(fmt.Errorf("stream %q: %w", name, err), c.Close())
	}
	s.before = p.last
	return s, nil
}

// Submit implements submit.Target.
func (s *stream) Submit(ctx context.Context, job submit.Job, t *submit.Ticket, done submit.Done) error {
	a, _ := t.Carrier.(*add)
	if a == nil {
		a = &add{s: s}
		t.Carrier = a
	}
	a.job, a.t, a.done = job, t, done
	return s.c.Submit(ctx, a, &s.after)
}

// Shutdown implements submit.Target. ReadBack still works after it.
func (s *stream) Shutdown(ctx context.Context) error {
	_, err := s.c.Shutdown(ctx)
	return err
}

// ReadBack implements Target. It uses a connection of its own.
func (s *stream) ReadBack(ctx context.Context, found func(id, queue, payload []byte)) (err error) {
	c, err := redis.New(s.o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	p := page{last: s.before, found: found}
	for {
		p.forward(s.name, p.last, pageSize)
		if err := c.Do(ctx, &p); err != nil {
			return fmt.Errorf("stream %q behind %s: %w", s.name, p.last, err)
		}
		if p.entries < pageSize {
			return nil
		}
	}
}

// Engine implements Target.
func (s *stream) Engine() fdengine.Stats { return s.c.Stats() }

// Close implements Target.
func (s *stream) Close() error { return s.c.Close() }

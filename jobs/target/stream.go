package target

import (
	"context"
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/redis"
)

// A read-back asks for pages of about pageBytes: large, since a server may walk the stream from its start to find
// the first entry of each, but bounded, whatever the size of a job.
const (
	firstPage = 1_000
	mostPage  = 200_000
	pageBytes = 16 << 20
)

// stream is a Redis stream. Submit may be called from several goroutines.
type stream struct {
	c       *redis.Client
	o       redis.Options
	name    string
	retries int
	before  string // the last entry when the target was opened
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
	s := &stream{c: c, o: ro, name: name, retries: o.Retries}
	p := page{last: "0-0"}
	p.newest(name)
	if err := c.Do(ctx, &p); err != nil {
		return nil, errors.Join(fmt.Errorf("stream %q: %w", name, err), end(c))
	}
	s.before = p.last
	return s, nil
}

// Submit implements submit.Target.
func (s *stream) Submit(ctx context.Context, job submit.Job, t *submit.Ticket, done submit.Done) error {
	a, _ := t.Carrier.(*add)
	if a == nil {
		a = new(add)
		t.Carrier = a
	}
	a.build(s.name, s.retries, job, t, done)
	return s.c.Submit(ctx, a, s.after)
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
	defer func() { err = errors.Join(err, end(c)) }()
	p := page{last: s.before, found: found}
	for count := firstPage; ; count = p.nextCount() {
		p.forward(s.name, p.last, count)
		if err := c.Do(ctx, &p); err != nil {
			return fmt.Errorf("stream %q behind %s: %w", s.name, p.last, err)
		}
		if p.entries < count {
			return nil
		}
	}
}

// Engine implements Target.
func (s *stream) Engine() fdengine.Stats { return s.c.Stats().Engine }

// Close implements Target.
func (s *stream) Close() error { return end(s.c) }

// end closes c and waits until its goroutines are gone.
func end(c *redis.Client) error {
	err := c.Close()
	<-c.Done()
	return err
}

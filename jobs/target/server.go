package target

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/redis"
)

// server is a stream or a list of a Redis server. Submit may be called from several goroutines.
type server struct {
	name     string
	client   *redis.Client
	options  redis.Options
	key      string
	idsKey   string // the set of ids
	list     bool
	body     body // of a list
	ids      IDs
	retries  retries
	patience time.Duration // how long a command is held that the server refuses; 0 = for ever
	mark     string        // stream: the last entry when the first run began; list: its length
	loaded   atomic.Bool
	again    again
}

func openServer(ctx context.Context, s spec, o Options) (*server, error) {
	t, err := s.server(o)
	if err != nil {
		return nil, err
	}
	if t.client, err = redis.New(t.options); err != nil {
		return nil, err
	}
	mark, err := t.look(ctx)
	if !o.ReadBack && mayNotRun(err) {
		err = nil // nobody will ask for the mark, and producers often may do nothing but write
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", t.name, silent(err, boundOf(o.MaxOutage))), end(t.client))
	}
	if t.mark == "" {
		t.mark = mark
	}
	return t, nil
}

// mayNotRun says that the user has not the right to a command, whatever its keys.
func mayNotRun(err error) bool {
	var se *redis.ServerError
	return errors.As(err, &se) && se.Code == "NOPERM" && strings.Contains(se.Message, "permissions to run")
}

// look asks where the stream or list stands.
func (t *server) look(ctx context.Context) (mark string, err error) {
	if t.list {
		n := &patient{bound: t.patience}
		n.Reset("LLEN").Arg(t.key)
		if err := t.client.Do(ctx, n); err != nil {
			return "", err
		}
		return n.Text()
	}
	p := page{patient: patient{bound: t.patience}, last: "0-0"}
	p.newest(t.key)
	err = t.client.Do(ctx, &p)
	return p.last, err
}

// Traits implements submit.Target.
func (t *server) Traits(job submit.Job) submit.Traits {
	return submit.Traits{Once: t.ids.remembers(job), Bare: t.list && t.body == bodyPayload}
}

// Submit implements submit.Target.
func (t *server) Submit(ctx context.Context, job submit.Job, ticket *submit.Ticket, done submit.Done) error {
	p, _ := ticket.Carrier.(*push)
	if p == nil {
		p = new(push)
		ticket.Carrier = p
	}
	if err := p.build(t, job, ticket, done); err != nil {
		return err
	}
	return t.client.Submit(ctx, p, completions{})
}

// Shutdown implements submit.Target. ReadBack still works after it.
func (t *server) Shutdown(ctx context.Context) error {
	_, err := t.client.Shutdown(ctx)
	t.again.wait()
	return err
}

// ReadBack implements Target. It uses a connection of its own.
func (t *server) ReadBack(ctx context.Context, found func(id, queue, payload []byte)) (err error) {
	c, err := redis.New(t.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(c)) }()
	if t.list {
		err = t.readList(ctx, c, found)
	} else {
		err = t.readStream(ctx, c, found)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	return nil
}

// Parts implements Target.
func (t *server) Parts() []Part { return []Part{{Name: t.name, Mark: t.mark}} }

// Engine implements Target.
func (t *server) Engine() fdengine.Stats { return t.client.Stats().Engine }

// Close implements Target.
func (t *server) Close() error { return end(t.client) }

// end closes c and waits until its goroutines are gone.
func end(c interface {
	Close() error
	Done() <-chan struct{}
}) error {
	err := c.Close()
	<-c.Done()
	return err
}

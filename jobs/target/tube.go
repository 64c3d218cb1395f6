package target

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
)

// tube is a tube of a beanstalkd. Submit may be called from several goroutines. The server remembers no ids: a job
// that may have been stored is sent again only when Options.Retries say so.
type tube struct {
	name    string
	spec    spec
	client  *beanstalkd.Client
	options beanstalkd.Options
	retries int
	mark    string // the id of a job that was put, and deleted, before the first run
	buried  atomic.Int64
}

func openTube(ctx context.Context, s spec, o Options) (_ *tube, err error) {
	t := &tube{
		name: s.name(), spec: s, options: s.tubeOptions(o), retries: retries(o.Retries).of(false), mark: o.markOf(s.name()),
	}
	if err := t.look(ctx, o.ReadBack && t.mark == ""); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, silent(err, boundOf(o.MaxOutage)))
	}
	t.client, err = beanstalkd.New(t.options)
	return t, err
}

// look asks the server how large a job may be, and puts a mark when there is to be one.
func (t *tube) look(ctx context.Context, mark bool) (err error) {
	c, err := beanstalkd.New(t.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(c)) }()
	stats, err := c.Stats(ctx)
	if err != nil {
		return err
	}
	if n, err := stats.Int("max-job-size"); err == nil && n > 0 && n <= maxJob {
		t.options.MaxJobSize = int(n)
	}
	if mark {
		id, err := t.putMark(ctx)
		t.mark = strconv.FormatUint(id, 10)
		return err
	}
	return nil
}

// put is one job. It lives as long as its ticket and is used again with it, so that a job costs no allocation.
type put struct {
	beanstalkd.Put
	t      *tube
	ticket *submit.Ticket
	done   submit.Done
	body   []byte
}

// Traits implements submit.Target.
func (t *tube) Traits(submit.Job) submit.Traits {
	return submit.Traits{Bare: t.spec.body == bodyPayload}
}

// Submit implements submit.Target.
func (t *tube) Submit(ctx context.Context, job submit.Job, ticket *submit.Ticket, done submit.Done) (err error) {
	p, _ := ticket.Carrier.(*put)
	if p == nil {
		p = &put{t: t}
		p.Priority, p.Delay, p.TTR = t.spec.priority, t.spec.delay, t.spec.ttr
		p.Replay, p.Budget = t.retries > 0, t.retries
		ticket.Carrier = p
	}
	p.ticket, p.done = ticket, done
	if p.body, err = t.spec.body.append(p.body[:0], job); err != nil {
		return err
	}
	p.Body = p.body
	return t.client.Submit(ctx, &p.Put, p)
}

// Complete implements fdengine.Completion.
func (p *put) Complete(_ fdengine.Command, err error) {
	t, done := p.ticket, p.done
	t.Sends = p.Sends
	if err != nil {
		t.Sends = max(t.Sends, sends(err))
	} else if p.Buried {
		p.t.buried.Add(1)
	}
	p.ticket, p.done, p.Body = nil, nil, nil
	if cap(p.body) > maxKept {
		p.body = nil
	}
	done.Done(t, err)
}

// Shutdown implements submit.Target. ReadBack still works after it.
func (t *tube) Shutdown(ctx context.Context) error {
	_, err := t.client.Shutdown(ctx)
	return err
}

// Parts implements Target.
func (t *tube) Parts() []Part {
	p := Part{Name: t.name, Mark: t.mark}
	if n := t.buried.Load(); n > 0 {
		p.Warning = fmt.Sprintf("%d jobs were stored but buried for want of memory: kick them", n)
	}
	return []Part{p}
}

// Engine implements Target.
func (t *tube) Engine() fdengine.Stats { return t.client.Usage().Engine }

// Close implements Target.
func (t *tube) Close() error { return end(t.client) }

// maxJob is the largest limit of a server that is taken over; a job beyond it is the server's to refuse.
const maxJob = 64 << 20

const (
	markTube  = "jobsub-mark" // of jobs that are there for a moment, for the sake of their id
	markDelay = time.Hour     // so that nobody gets one
)

// putMark puts a job that nobody gets and deletes it: jobs put before it have lower ids, those put later higher ones.
func (t *tube) putMark(ctx context.Context) (id uint64, err error) {
	o := t.options
	o.Tube = markTube
	c, err := beanstalkd.NewConsumer(o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end(c)) }()
	p, err := beanstalkd.New(o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end(p)) }()
	if id, err = p.Put(ctx, &beanstalkd.Put{Delay: markDelay}); err != nil {
		return 0, err
	}
	return id, c.Do(ctx, beanstalkd.Delete(id))
}

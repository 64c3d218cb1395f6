package differential

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/fdengine"
)

// ourJobs runs a program through the library: the producer's pieces pipelined over the shared connection, the
// consumer's over one of its own.
type ourJobs struct {
	*beanstalkd.Client
	consumer *beanstalkd.Consumer
	results  []string
	open     sync.WaitGroup
	held     []*beanstalkd.Job
	gone     []*beanstalkd.Job
}

func runOurJobs(t *testing.T, o beanstalkd.Options, p *jobProgram) []string {
	o.MaxJobSize = -1 // the server's word, not ours
	o.Engine.ReadTimeout, o.Engine.WriteTimeout = patience, patience
	consumer, err := beanstalkd.NewConsumer(o, "default")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, consumer.Close())
		<-consumer.Done()
	})
	o.ManyTubes = true
	c, err := beanstalkd.New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		<-c.Done()
	})
	// Both are connected from the start, as the other clients are.
	require.NoError(t, c.Ping(t.Context()))
	require.NoError(t, consumer.Do(t.Context(), beanstalkd.ListTubeUsed()))

	r := &ourJobs{Client: c, consumer: consumer, results: make([]string, p.size)}
	s := c.Stream()
	for i := range p.pieces {
		r.piece(t.Context(), s, &p.pieces[i])
	}
	r.open.Wait()
	require.NoError(t, s.Close())
	u := c.Usage().Engine
	require.Zero(t, u.Replays+u.Refusals+u.Redirects+u.Cuts+u.Retired+u.Panics, "%+v", u)
	require.EqualValues(t, 1, u.Sessions, "%+v", u)
	t.Logf("%d commands of the producer in %d writes", u.Sent, u.Writes)
	return r.results
}

func (r *ourJobs) piece(ctx context.Context, s *fdengine.Stream, pc *jobPiece) {
	if pc.consume {
		r.open.Wait()
		for j := range pc.ops {
			r.results[pc.first+j] = r.consume(ctx, &pc.ops[j])
		}
		return
	}
	cmds := make([]fdengine.Command, len(pc.ops))
	for j := range cmds {
		cmds[j] = jobCommand(&pc.ops[j])
	}
	switch pc.manner {
	case batch:
		errs := make([]error, len(cmds))
		_ = r.DoBatch(ctx, cmds, errs) // the first of errs
		for j, c := range cmds {
			r.results[pc.first+j] = jobAnswer(c, &pc.ops[j], errs[j])
		}
	case do:
		for j, c := range cmds {
			r.results[pc.first+j] = jobAnswer(c, &pc.ops[j], r.Do(ctx, c))
		}
	default:
		var to fdengine.Submitter = r.Client
		if pc.manner == stream {
			to = s
		}
		for j, c := range cmds {
			p := &jobPlace{r, &pc.ops[j], pc.first + j}
			r.open.Add(1)
			if err := to.Submit(ctx, c, p); err != nil {
				p.Complete(c, err)
			}
		}
	}
}

// jobPlace is where the outcome of one submitted command goes.
type jobPlace struct {
	r  *ourJobs
	op *jobOp
	at int
}

// Complete runs on the reader's goroutine.
func (p *jobPlace) Complete(c fdengine.Command, err error) {
	p.r.results[p.at] = jobAnswer(c, p.op, err)
	p.r.open.Done()
}

func jobCommand(o *jobOp) fdengine.Command {
	switch o.verb {
	case put:
		return &beanstalkd.Put{Tube: o.tube, Body: o.body, Priority: o.pri, Delay: o.delay, TTR: o.ttr}
	case peek:
		return beanstalkd.Peek(o.id)
	case peekReady:
		return beanstalkd.PeekReady(o.tube)
	case peekDelayed:
		return beanstalkd.PeekDelayed(o.tube)
	case peekBuried:
		return beanstalkd.PeekBuried(o.tube)
	case kick:
		return beanstalkd.Kick(o.tube, o.n)
	case kickJob:
		return beanstalkd.KickJob(o.id)
	case pause:
		return beanstalkd.PauseTube(o.tube, o.delay)
	case statsJob:
		return beanstalkd.StatsJob(o.id)
	case statsTube:
		return beanstalkd.StatsTube(o.tube)
	case stats:
		return beanstalkd.ServerStats()
	}
	return beanstalkd.ListTubes()
}

// jobAnswer is the outcome of a command as text. What is no reply begins with an exclamation mark.
func jobAnswer(c fdengine.Command, o *jobOp, err error) string {
	if err != nil {
		return jobError(err)
	}
	if p, is := c.(*beanstalkd.Put); is {
		return fmt.Sprint("INSERTED ", p.ID, p.Buried)
	}
	cmd := c.(*beanstalkd.Cmd)
	switch o.verb {
	case peek, peekReady, peekDelayed, peekBuried:
		id, body, err := cmd.Job()
		return found(id, body, err)
	case kick:
		n, err := cmd.Count()
		return fmt.Sprint("KICKED ", n, err)
	case statsJob, statsTube, stats:
		s, err := cmd.Stats()
		if err != nil {
			return jobError(err)
		}
		return renderStats(o.verb, func(yield func(string, string) bool) {
			for _, p := range s {
				if !yield(p.Key, p.Value) {
					return
				}
			}
		})
	case listTubes:
		l, err := cmd.List()
		slices.Sort(l) // in the order of their making
		return fmt.Sprint(l, err)
	}
	return "OK"
}

// found is the outcome of a peek or reserve. err is not that of the reply.
func found(id uint64, body []byte, err error) string {
	if err != nil {
		return "! " + err.Error()
	}
	return fmt.Sprintf("FOUND %d %s", id, quote(string(body)))
}

func jobError(err error) string {
	var e *beanstalkd.ServerError
	if errors.As(err, &e) {
		return e.Code
	}
	return "! " + err.Error()
}

func (r *ourJobs) consume(ctx context.Context, o *jobOp) string {
	switch o.verb {
	case reserve, reserveJob:
		var j *beanstalkd.Job
		var err error
		if o.verb == reserve {
			j, err = r.consumer.ReserveWithTimeout(ctx, 0)
		} else {
			j, err = r.consumer.ReserveJob(ctx, o.id)
		}
		if err != nil {
			return jobError(err)
		}
		r.held = append(r.held, j)
		return found(j.ID, j.Body, nil)
	case deleteID:
		return okOr(r.consumer.Do(ctx, beanstalkd.Delete(o.id)))
	case watch:
		return watching(r.consumer.Watch(ctx, o.tube))
	case ignore:
		return watching(r.consumer.Ignore(ctx, o.tube))
	}
	j, ok := r.pick(o)
	if !ok {
		return "nothing held"
	}
	switch o.verb {
	case deleteHeld:
		return okOr(j.Delete(ctx))
	case release:
		return okOr(j.Release(ctx, o.pri, o.delay))
	case bury:
		return okOr(j.Bury(ctx, o.pri))
	}
	return okOr(j.Touch(ctx))
}

// pick takes the job that a command is about, out of those held when it ends the reservation.
func (r *ourJobs) pick(o *jobOp) (*beanstalkd.Job, bool) {
	return pickFrom(o, &r.held, &r.gone)
}

// pickFrom is the same choice for both clients.
func pickFrom[J any](o *jobOp, held, gone *[]J) (j J, ok bool) {
	from := *held
	if o.verb == touchGone {
		from = *gone
	}
	if len(from) == 0 {
		return j, false
	}
	i := o.n % len(from)
	j = from[i]
	if o.verb != touch && o.verb != touchGone {
		*held = slices.Delete(*held, i, i+1)
		*gone = append(*gone, j)
	}
	return j, true
}

func okOr(err error) string {
	if err != nil {
		return jobError(err)
	}
	return "OK"
}

func watching(n int, err error) string {
	if err != nil {
		return jobError(err)
	}
	return fmt.Sprint("WATCHING ", n)
}

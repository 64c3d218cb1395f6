package beanstalkd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// Consumer reserves jobs over a connection of its own and works on them through their Job. One command is under way
// at a time: a call made while another goroutine's Reserve waits, waits for it too. So give each worker its
// Consumer, or reserve with a short timeout.
//
// When the connection dies it is replaced by the next call, with the same tubes watched, and a Reserve under way
// goes on there. The jobs that were reserved on the old one are lost to this Consumer: the server gives them to
// whoever reserves next, and their Job says ErrReservationLost. To take that in time, see Job.Lost.
//
// When jobs are handed out three times in a row and do not arrive whole, the reserve ends; its error has a *TornError,
// which names the last of them.
//
// A ctx that ends while the server may still answer cuts the connection, since a job that is handed out there would
// reach nobody; that loses the reservations held. Use ReserveWithTimeout to stop waiting without that.
type Consumer struct {
	engine *fdengine.Engine
	link   *link
	turn   chan struct{} // cap 1: full while a command is under way
	read   time.Duration // for a reply, beyond the time a command itself takes; 0 = none
	done   chan struct{}
}

// NewConsumer makes a Consumer that watches the given tubes and no other; without any, the tube "default". It dials
// when there is work. Options.Tube is what its peeks and kicks are about; ManyTubes must not be set. Of
// Options.Engine, ReadTimeout bounds the wait for a reply beyond the time that a reserve itself waits; Window,
// WindowBytes, Queue, QueueBytes, IdleRelease, MaxHold, Rerouter and StrictOrder must be left empty.
func NewConsumer(o Options, tubes ...string) (*Consumer, error) {
	if err := errors.Join(o.Validate(), o.validateConsumer(tubes)); err != nil {
		return nil, err
	}
	if len(tubes) == 0 {
		tubes = []string{"default"}
	}
	l := newLink(tubes)
	p, err := pool.New(o.pool(l.tubes))
	if err != nil {
		return nil, err
	}
	l.pool = p
	c := &Consumer{link: l, turn: make(chan struct{}, 1), read: o.Engine.ReadTimeout, done: make(chan struct{})}
	switch {
	case c.read == 0:
		c.read = 5 * time.Second
	case c.read < 0:
		c.read = 0
	}
	eo := o.engine(l)
	l.rest = c.read
	eo.Protocol = func() fdengine.Protocol { return newWatchful(l) }
	eo.Window, eo.Queue, eo.ReadTimeout = 1, 1, -1
	if c.engine, err = fdengine.New(eo); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	go func() {
		reap(c.engine, p, c.done)
		l.close()
	}()
	return c, nil
}

// validateConsumer returns the faults that only a Consumer sees.
func (o Options) validateConsumer(tubes []string) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("beanstalkd: "+format, args...)) }
	for _, t := range tubes {
		if err := beanstalk.CheckName(t); err != nil {
			fault("watched: %w", err)
		}
	}
	e := o.Engine
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"ManyTubes", o.ManyTubes}, {"MaxAge", o.MaxAge != 0}, {"Engine.Window", e.Window != 0}, {"Engine.WindowBytes", e.WindowBytes != 0},
		{"Engine.Queue", e.Queue != 0}, {"Engine.QueueBytes", e.QueueBytes != 0}, {"Engine.IdleRelease", e.IdleRelease != 0},
		{"Engine.MaxHold", e.MaxHold != 0}, {"Engine.Rerouter", e.Rerouter != nil}, {"Engine.StrictOrder", e.StrictOrder},
	} {
		if f.set {
			fault("%s is set, it must be left empty for a Consumer", f.name)
		}
	}
	return errors.Join(faults...)
}

// reserveBudget lets a reserve outlive as many connections as need be: a job that went to one that died is back.
const reserveBudget = 65535

// Reserve waits for a job until ctx ends. ErrDeadlineSoon: a job held by this Consumer will be taken back within a
// second, and there was none to reserve.
func (c *Consumer) Reserve(ctx context.Context) (*Job, error) {
	return c.reserve(ctx, Reserve(), 0)
}

// ReserveWithTimeout waits for a job for at most d, in whole seconds, rounded up; ErrTimedOut when there was none,
// and ErrDeadlineSoon as in Reserve. With 0 it does not wait.
func (c *Consumer) ReserveWithTimeout(ctx context.Context, d time.Duration) (*Job, error) {
	cmd := ReserveWithTimeout(d)
	return c.reserve(ctx, cmd, c.bound(time.Duration(cmd.seconds)*time.Second))
}

// ReserveJob reserves the job of that id, whatever its tube, and whether it is ready, delayed or buried. ErrNotFound
// when there is none, or somebody has reserved it.
func (c *Consumer) ReserveJob(ctx context.Context, id uint64) (*Job, error) {
	return c.reserve(ctx, ReserveJob(id), c.bound(0))
}

// bound is how long to wait for the reply of a command that takes d by itself.
func (c *Consumer) bound(d time.Duration) time.Duration {
	if c.read == 0 {
		return 0
	}
	return d + c.read
}

// reservation is a reserve whose Job is made on the reader's goroutine: only there it is known which connection
// the reply came on.
type reservation struct {
	*Cmd
	c   *Consumer
	job *Job
}

// DecodeReply implements fdengine.Command.
func (r *reservation) DecodeReply(rep fdengine.Reply) error {
	if err := r.Cmd.DecodeReply(rep); err != nil {
		return err
	}
	epoch, lost := r.c.link.held()
	r.job = &Job{ID: r.number, Body: bytes.Clone(r.text), c: r.c, epoch: epoch, lost: lost}
	return nil
}

func (c *Consumer) reserve(ctx context.Context, cmd *Cmd, bound time.Duration) (*Job, error) {
	cmd.lent = true
	r := &reservation{Cmd: cmd.WithBudget(reserveBudget), c: c}
	if err := c.do(ctx, r, 0, bound); err != nil {
		return nil, err
	}
	return r.job, nil
}

// watching is a watch or ignore that is remembered, on the reader's goroutine: the next connection is set up with
// it.
type watching struct {
	*Cmd
	link *link
}

// DecodeReply implements fdengine.Command.
func (w *watching) DecodeReply(rep fdengine.Reply) error {
	err := w.Cmd.DecodeReply(rep)
	if err == nil {
		w.link.watch(w.tube, w.id == vWatch)
	}
	return err
}

// Watch adds a tube to those that jobs are reserved from and returns how many there are.
func (c *Consumer) Watch(ctx context.Context, tube string) (int, error) {
	return c.watch(ctx, Watch(tube))
}

// Ignore takes a tube from them. ErrNotIgnored when it is the last.
func (c *Consumer) Ignore(ctx context.Context, tube string) (int, error) {
	return c.watch(ctx, Ignore(tube))
}

func (c *Consumer) watch(ctx context.Context, cmd *Cmd) (int, error) {
	cmd.lent = true
	if err := c.do(ctx, &watching{cmd, c.link}, 0, c.bound(0)); err != nil {
		return 0, err
	}
	return cmd.Count()
}

// Watched are the tubes that jobs are reserved from.
func (c *Consumer) Watched() []string { return slices.Sorted(slices.Values(c.link.tubes())) }

// Do sends a command that neither waits for a job nor is about one that is reserved: what a Client takes, or a
// Delete. Others are refused; there are methods for them.
func (c *Consumer) Do(ctx context.Context, cmd *Cmd) error {
	if cmd.lent = cmd.id == vDelete; cmd.lent {
		defer func() { cmd.lent = false }()
	}
	return c.do(ctx, cmd, 0, c.bound(0))
}

var errLate = fmt.Errorf("beanstalkd: no reply within Engine.ReadTimeout: %w", context.DeadlineExceeded)

// do runs one command when its turn comes. It must go out in the epoch needs, if that is not 0; see link.begin.
func (c *Consumer) do(ctx context.Context, cmd fdengine.Command, needs uint64, bound time.Duration) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return &fdengine.CallError{Fate: carry.NotSent, Cause: ctx.Err()}
	}
	defer func() { <-c.turn }()
	if err := c.link.begin(needs, bound); err != nil {
		return err
	}
	err := c.engine.Do(ctx, cmd)
	late := c.link.end()
	if err == nil || fdengine.FateOf(err) != carry.MaybeExecuted {
		return err
	}
	if ctx.Err() != nil {
		c.link.cut()
	}
	var ce *fdengine.CallError
	if late && errors.As(err, &ce) {
		return &fdengine.CallError{Fate: ce.Fate, Sends: ce.Sends, Class: ce.Class, Cause: errors.Join(errLate, ce.Cause)}
	}
	return err
}

// Usage returns a snapshot; its parts are taken one after the other.
func (c *Consumer) Usage() Usage { return Usage{Engine: c.engine.Stats(), Pool: c.link.pool.Stats()} }

// Close ends the Consumer without waiting. Its connection is closed, so that the server takes back the jobs that are
// reserved on it.
func (c *Consumer) Close() error {
	err := c.engine.Close()
	c.link.cut()
	return err
}

// Done is closed when the Consumer has ended and its goroutines and connection are gone.
func (c *Consumer) Done() <-chan struct{} { return c.done }

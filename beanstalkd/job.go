package beanstalkd

import (
	"context"
	"errors"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
)

// Job is a job that a Consumer has reserved. It must be deleted, released or buried within its time to run, which
// Touch starts anew; else the server takes it back. Its methods may be called from any goroutine; they wait for
// their turn on the Consumer's connection.
//
// A method returns a *LostError, which matches ErrReservationLost, when the job is not reserved any more. Its fate,
// by fdengine.FateOf, says what became of the command: NotSent when the connection was gone before; MaybeExecuted
// when it died meanwhile, so that the job may have been deleted, or may come again. No command for a job ever goes out
// on another connection than that which reserved it.
type Job struct {
	ID    uint64
	Body  []byte // the caller's
	c     *Consumer
	epoch uint64
	lost  <-chan struct{}
}

// Lost is closed when the connection that reserved the job is gone: the server gives it to somebody else. It is not
// closed when the time to run is over, which only the server sees.
func (j *Job) Lost() <-chan struct{} { return j.lost }

// Delete removes the job: it is done.
func (j *Job) Delete(ctx context.Context) error { return j.do(ctx, Delete(j.ID)) }

// Release gives the job back with a new priority, to be reserved again after delay, in whole seconds, rounded up.
// ErrBuried when the server had no memory for that and buried it.
func (j *Job) Release(ctx context.Context, priority uint32, delay time.Duration) error {
	return j.do(ctx, Release(j.ID, priority, delay))
}

// Bury puts the job aside with a new priority, until it is kicked.
func (j *Job) Bury(ctx context.Context, priority uint32) error {
	return j.do(ctx, Bury(j.ID, priority))
}

// Touch starts the job's time to run anew.
func (j *Job) Touch(ctx context.Context) error { return j.do(ctx, Touch(j.ID)) }

func (j *Job) do(ctx context.Context, cmd *Cmd) error {
	cmd.lent = true
	err := j.c.do(ctx, cmd, j.epoch, j.c.bound(0))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errLost):
		return &LostError{ID: j.ID}
	case errors.Is(err, ErrNotFound):
		return &LostError{ID: j.ID, Cause: err}
	}
	select {
	case <-j.lost:
		var server *ServerError
		if !errors.As(err, &server) || errors.Is(err, fdengine.ErrMaybeExecuted) {
			return &LostError{ID: j.ID, Cause: err}
		}
	default:
	}
	return err
}

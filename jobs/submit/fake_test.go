package submit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is one job a fake was given.
type call struct {
	line               int64
	id, queue, payload string
	ticket             *submit.Ticket
	done               submit.Done
}

// fake is a Target that records its calls and settles each by answer; a nil answer leaves it open until Shutdown,
// which settles the open ones as MaybeExecuted.
type fake struct {
	answer func(call) error // nil func: every job is taken
	refuse func(call) error // Submit's own error; nil func: none
	sends  int              // of each job; 0: one, or none when it was not sent
	traits func(submit.Job) submit.Traits
	async  bool // answers come from another goroutine, in bursts

	mu struct {
		sync.Mutex
		calls   []call
		open    []call
		maxOpen int
		shut    int
	}
	wg sync.WaitGroup
}

var errOpen = errors.New("left open")

func (f *fake) Traits(j submit.Job) submit.Traits {
	if f.traits == nil {
		return submit.Traits{}
	}
	return f.traits(j)
}

func (f *fake) Submit(_ context.Context, j submit.Job, t *submit.Ticket, done submit.Done) error {
	c := call{j.Line, string(j.ID), string(j.Queue), string(j.Payload), t, done}
	if f.refuse != nil {
		if err := f.refuse(c); err != nil {
			return err
		}
	}
	f.mu.Lock()
	f.mu.calls = append(f.mu.calls, c)
	f.mu.open = append(f.mu.open, c)
	f.mu.maxOpen = max(f.mu.maxOpen, len(f.mu.open))
	n := len(f.mu.open)
	f.mu.Unlock()
	if !f.async {
		f.settle()
	} else if n == 1 {
		f.wg.Go(f.settle)
	}
	return nil
}

// settle answers all open calls that have an answer.
func (f *fake) settle() {
	f.mu.Lock()
	open := f.mu.open
	f.mu.open = nil
	f.mu.Unlock()
	for _, c := range open {
		var err error
		if f.answer != nil {
			err = f.answer(c)
		}
		if errors.Is(err, errOpen) {
			f.mu.Lock()
			f.mu.open = append(f.mu.open, c)
			f.mu.Unlock()
			continue
		}
		c.ticket.Sends = 1
		if fdengine.FateOf(err) == carry.NotSent {
			c.ticket.Sends = 0
		}
		if f.sends > 0 {
			c.ticket.Sends = f.sends
		}
		c.done.Done(c.ticket, err)
	}
}

func (f *fake) Shutdown(context.Context) error {
	f.wg.Wait()
	f.mu.Lock()
	open := f.mu.open
	f.mu.open = nil
	f.mu.shut++
	f.mu.Unlock()
	for _, c := range open {
		c.done.Done(c.ticket, maybe)
	}
	return nil
}

func (f *fake) payloads() []string {
	var out []string
	for _, c := range f.mu.calls {
		out = append(out, c.payload)
	}
	return out
}

func (f *fake) lines() []int64 {
	var out []int64
	for _, c := range f.mu.calls {
		out = append(out, c.line)
	}
	return slices.Clip(out)
}

var (
	maybe   = &fdengine.CallError{Fate: carry.MaybeExecuted, Sends: 1, Cause: errors.New("connection reset")}
	notSent = &fdengine.CallError{Fate: carry.NotSent, Class: fdengine.ErrUnavailable}
	refused = serverError("OOM command not allowed")
)

// serverError is a refusal as a binding reports it.
type serverError string

func (e serverError) Error() string  { return string(e) }
func (serverError) Fate() carry.Fate { return carry.Answered }

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// readBackTimeout bounds a read-back.
const readBackTimeout = 10 * time.Minute

// work is one run of submit or demo, from opening the target to the account line.
type work struct {
	std
	flags
	target   target.Options
	options  submit.Options
	in       io.Reader
	bytes    int64 // of in; 0 = unknown
	jobs     int64 // in in; 0 = unknown
	verify   bool
	exact    bool              // the stream must hold our jobs and nothing else
	resume   string            // the state file; empty: none
	input    string            // of the input, when it is a file
	settings map[string]string // what a state file must agree with
}

// hopeless says that no further job will fare better.
func hopeless(err error) bool {
	return errors.Is(err, fdengine.ErrUnavailable) || errors.Is(err, fdengine.ErrClosed) || errors.Is(err, fdengine.ErrBroken) ||
		errors.Is(err, target.ErrBody)
}

// do runs it, unless something was wrong with it before, tells how it ended, and returns the exit code.
func (w *work) do(parent context.Context, wrong error) int {
	end := w.attempt(parent, wrong)
	return w.finish(end)
}

// attempt runs it. When it returns everything is closed.
func (w *work) attempt(parent context.Context, wrong error) (end ending) {
	in := &counted{r: w.in}
	closed := func(c io.Closer) { end.err = errors.Join(end.err, c.Close()) }
	defer in.Close() // what was read is read
	if wrong != nil {
		end.err = wrong
		return end
	}
	var running atomic.Pointer[submit.Run]
	ctx, calm := interruptible(parent,
		func() {
			fmt.Fprintf(w.err, "interrupted: up to %v for what is in flight; once more ends at once\n", w.drain)
		},
		func() {
			var a submit.Account
			if r := running.Load(); r != nil {
				a = r.Account()
			}
			fmt.Fprintln(w.err, a)
		})
	defer calm()
	journal, err := w.openState()
	if err != nil {
		end.err = err
		return end
	}
	if journal != nil {
		defer closed(journal)
		if end.err = w.reportApart(); end.err != nil {
			return end
		}
	}
	report := &lateFile{name: w.report}
	defer closed(report)
	w.options.Report = report
	w.options.Corrupt = w.corrupt
	if w.verify {
		w.options.Ledger = submit.NewLedger()
		w.target.ReadBack = true
	}
	r, err := submit.New(w.options)
	if err != nil {
		end.err = err
		return end
	}
	running.Store(r)
	t, err := target.Open(ctx, w.to, w.target)
	if err != nil && ctx.Err() != nil {
		// Interrupted before the target had answered: nothing was accepted, and the account says so.
		return ending{err: submit.ErrInterrupted, interrupted: true}
	}
	if err != nil {
		end.err = err
		return end
	}
	defer closed(t)
	end.parts = t.Parts()
	if err := errors.Join(report.create(), w.begin(ctx, journal, t, r)); err != nil {
		end.err, end.interrupted = err, ctx.Err() != nil
		return end
	}

	end.began = true
	bar := newProgress(w, r, in)
	end.account, end.err = r.Run(ctx, in, t)
	bar.stop()
	end.interrupted = errors.Is(end.err, submit.ErrInterrupted)
	end.parts, end.accounts, end.reasons = t.Parts(), r.Parts(), r.Reasons()
	if w.verify && ctx.Err() == nil {
		end.verdict, end.verifyErr = verify(ctx, t, w.options.Ledger)
	}
	return end
}

func (w *work) corrupt(line int64, err error) { fmt.Fprintf(w.err, "line %d: %v\n", line, err) }

// verify reads back what the servers have and compares.
func verify(ctx context.Context, to target.Target, l *submit.Ledger) (*submit.Verdict, error) {
	if err := readBack(ctx, to, l.Found); err != nil {
		return nil, err
	}
	v := l.Verdict()
	return &v, nil
}

func readBack(ctx context.Context, to target.Target, found func(id, queue, payload []byte)) error {
	ctx, cancel := context.WithTimeout(ctx, readBackTimeout)
	defer cancel()
	if err := to.ReadBack(ctx, found); err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	return nil
}

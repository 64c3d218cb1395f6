package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

const (
	openTimeout     = 10 * time.Second
	readBackTimeout = 10 * time.Minute
)

// work is one run of either command, from opening the target to the account line.
type work struct {
	std
	flags
	options submit.Options
	in      io.Reader
	bytes   int64 // of in; 0 = unknown
	jobs    int64 // in in; 0 = unknown
	verify  bool
	exact   bool // the stream must hold our jobs and nothing else
}

// hopeless says that the connection is gone for good as far as this run is concerned.
func hopeless(err error) bool {
	return errors.Is(err, fdengine.ErrUnavailable) || errors.Is(err, fdengine.ErrClosed) || errors.Is(err, fdengine.ErrBroken)
}

// do runs it and returns the exit code. The error is what the user has not been told yet.
func (w *work) do(parent context.Context) (code int, err error) {
	in := &counted{r: w.in}
	defer in.Close()
	if err := w.options.Validate(); err != nil {
		return exitFailed, err
	}
	report, err := createReport(w.report)
	if err != nil {
		return exitFailed, err
	}
	defer func() { err = errors.Join(err, report.Close()) }()
	w.options.Report = report
	w.options.Corrupt = func(line int64, err error) { fmt.Fprintf(w.err, "line %d: %v\n", line, err) }
	if w.verify {
		w.options.Ledger = submit.NewLedger()
	}
	r, err := submit.New(w.options)
	if err != nil {
		return exitFailed, err
	}

	ctx, calm := interruptible(parent,
		func() {
			fmt.Fprintf(w.err, "interrupted: up to %v for what is in flight; once more ends at once\n", w.drain)
		},
		func() { fmt.Fprintln(w.err, r.Account()) })
	defer calm()
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	to, err := target.Open(opening, w.to, w.targetOptions())
	cancel()
	if err != nil {
		return exitFailed, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	bar := newProgress(w, r, in)
	account, runErr := r.Run(ctx, in, to)
	bar.stop()
	end := ending{account: account, err: runErr, interrupted: errors.Is(runErr, submit.ErrInterrupted)}
	if w.verify && ctx.Err() == nil {
		end.verdict, end.verifyErr = verify(ctx, to, w.options.Ledger)
	}
	return w.finish(end), nil
}

// verify reads back what the server has and compares.
func verify(ctx context.Context, to target.Target, l *submit.Ledger) (*submit.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, readBackTimeout)
	defer cancel()
	if err := to.ReadBack(ctx, l.Found); err != nil {
		return nil, fmt.Errorf("reading back: %w", err)
	}
	v := l.Verdict()
	return &v, nil
}

func createReport(name string) (io.WriteCloser, error) {
	if name == "" {
		return nothing{io.Discard}, nil
	}
	return os.Create(name)
}

type nothing struct{ io.Writer }

func (nothing) Close() error { return nil }

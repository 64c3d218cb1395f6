package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/state"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

const (
	openTimeout     = 10 * time.Second
	readBackTimeout = 10 * time.Minute
)

// work is one run of submit or demo, from opening the target to the account line.
type work struct {
	std
	flags
	options  submit.Options
	in       io.Reader
	bytes    int64 // of in; 0 = unknown
	jobs     int64 // in in; 0 = unknown
	verify   bool
	exact    bool              // the stream must hold our jobs and nothing else
	resume   string            // the state file; empty: none
	path     string            // of the input, when there is a state file
	input    string            // of the input, when it is a file
	settings map[string]string // what a state file must agree with
}

// hopeless says that no further job will fare better.
func hopeless(err error) bool {
	return errors.Is(err, fdengine.ErrUnavailable) || errors.Is(err, fdengine.ErrClosed) || errors.Is(err, fdengine.ErrBroken) ||
		errors.Is(err, target.ErrBody)
}

// do runs it and returns the exit code. The error is what the user has not been told yet.
func (w *work) do(parent context.Context) (code int, err error) {
	in := &counted{r: w.in}
	defer in.Close()
	to, err := w.targetOptions()
	if err := errors.Join(w.options.Validate(), err); err != nil {
		return exitFailed, err
	}
	journal, err := w.openState(&to)
	if err != nil {
		return exitFailed, err
	}
	if journal != nil {
		defer func() { err = errors.Join(err, journal.Close()) }()
	}
	report := &lateFile{name: w.report}
	if err := w.reportApart(); err != nil {
		return exitFailed, err
	}
	defer func() { err = errors.Join(err, report.Close()) }()
	w.options.Report = report
	w.options.Corrupt = w.corrupt
	if w.verify {
		w.options.Ledger = submit.NewLedger()
		to.ReadBack = true
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
	t, err := target.Open(opening, w.to, to)
	cancel()
	if err != nil && ctx.Err() != nil {
		// Interrupted before the target had answered: nothing was accepted, and the account says so.
		return w.finish(ending{account: r.Account(), err: submit.ErrInterrupted, interrupted: true}), nil
	}
	if err != nil {
		return exitFailed, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := report.create(); err != nil {
		return exitFailed, err
	}
	if journal != nil {
		if err := journal.Start(w.origin(t.Parts())); err != nil {
			return exitFailed, err
		}
	}

	bar := newProgress(w, r, in)
	account, runErr := r.Run(ctx, in, t)
	bar.stop()
	end := ending{
		account: account, err: runErr, interrupted: errors.Is(runErr, submit.ErrInterrupted),
		parts: t.Parts(), accounts: r.Parts(),
	}
	if w.verify && ctx.Err() == nil {
		end.verdict, end.verifyErr = verify(ctx, t, w.options.Ledger)
	}
	return w.finish(end), nil
}

// openState opens the state file, if there is to be one, and compares the input with it.
func (w *work) openState(to *target.Options) (*state.Journal, error) {
	if w.resume == "" {
		return nil, nil
	}
	for _, spec := range w.to {
		if spec == "embedded:" {
			return nil, errors.New("--resume with embedded: the server would be gone with the run")
		}
	}
	j, err := state.Open(w.resume)
	if err != nil {
		return nil, err
	}
	w.options.Journal, w.options.Past = j, j.Past()
	to.Mark = j.Past().Mark
	to.ReadBack = true // a later run may want to verify
	if err := w.checkInput(j.Past()); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// checkInput compares the input with what earlier runs have seen of it.
func (w *work) checkInput(past *state.Past) error {
	f, err := os.Open(w.path)
	if err != nil {
		return err
	}
	err = submit.CheckInput(f, past)
	if errors.Is(err, submit.ErrOtherInput) {
		err = fmt.Errorf("%s belongs to another input than %s: %w", w.resume, w.path, err)
	}
	return errors.Join(err, f.Close())
}

func (w *work) origin(parts []target.Part) state.Origin {
	o := state.Origin{Settings: w.settings}
	for _, p := range parts {
		o.Targets = append(o.Targets, state.Place{Name: p.Name, Mark: p.Mark})
	}
	return o
}

func (w *work) corrupt(line int64, err error) { fmt.Fprintf(w.err, "line %d: %v\n", line, err) }

// verify reads back what the servers have and compares.
func verify(ctx context.Context, to target.Target, l *submit.Ledger) (*submit.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, readBackTimeout)
	defer cancel()
	if err := to.ReadBack(ctx, l.Found); err != nil {
		return nil, fmt.Errorf("reading back: %w", err)
	}
	v := l.Verdict()
	return &v, nil
}

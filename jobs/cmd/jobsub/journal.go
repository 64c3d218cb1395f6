package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fdengine/fullduplex/jobs/state"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// openState opens the state file, if there is to be one, and compares the input with it.
func (w *work) openState() (*state.Journal, error) {
	if w.resume == "" {
		return nil, nil
	}
	j, err := state.Open(w.resume)
	if err != nil {
		return nil, err
	}
	w.options.Journal, w.options.Past = j, j.Past()
	w.target.Mark = j.Past().Mark
	w.target.ReadBack = true // a later run may want to verify, or to look for jobs in doubt
	if err := w.checkInput(j.Past()); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// checkInput compares the input with what earlier runs have seen of it.
func (w *work) checkInput(past *state.Past) error {
	f, err := os.Open(w.input)
	if err != nil {
		return err
	}
	err = submit.CheckInput(f, past)
	if errors.Is(err, submit.ErrOtherInput) {
		err = fmt.Errorf("%s belongs to another input than %s: %w", w.resume, w.input, err)
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

// begin starts the journal, if there is one, and looks for the jobs in doubt that the target can show.
func (w *work) begin(ctx context.Context, j *state.Journal, t target.Target, r *submit.Run) error {
	if j == nil {
		return nil
	}
	if err := j.Start(w.origin(t.Parts())); err != nil {
		return err
	}
	j.Allow(int64(w.retries))
	if err := j.Flush(); err != nil {
		return err
	}
	input := func() (io.ReadCloser, error) { return os.Open(w.input) }
	doubts, err := submit.FindDoubts(input, w.options, t)
	if err != nil || doubts.Count() == 0 {
		return err
	}
	n := doubts.Count()
	err = readBack(ctx, t, doubts.Found)
	if errors.Is(err, target.ErrNoMark) {
		return nil // a state file of a run that left none: they stay in doubt
	}
	if err != nil {
		return fmt.Errorf("looking for %d jobs in doubt: %w", n, err)
	}
	landed := doubts.Landed()
	w.say("%d jobs of earlier runs were in doubt: %d of them were found in the target", n, landed.Count())
	r.Landed(landed)
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/jobs/state"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// planned is what a dry run prints with --json.
type planned struct {
	DryRun  bool          `json:"dry_run"`
	Jobs    int64         `json:"jobs"`     // would be sent
	Once    int64         `json:"once"`     // of them: protected by their ids
	InDoubt int64         `json:"in_doubt"` // would be listed as maybe
	Earlier int64         `json:"earlier"`
	Corrupt int64         `json:"corrupt"`
	Lines   int64         `json:"lines"`
	Payload int64         `json:"payload_bytes"` // of Jobs
	Targets []plannedPart `json:"targets"`
	Error   string        `json:"error,omitempty"`
	Exit    int           `json:"exit"`
}

type plannedPart struct {
	Name string `json:"name"`
	Jobs int64  `json:"jobs"`
	Once int64  `json:"once"`
}

// plan reads and checks everything and says what would be sent. Nothing is connected to or written.
// wrong is what was found to be wrong before.
func (w *work) plan(ctx context.Context, wrong error) (code int) {
	p, err := w.planOf(ctx, wrong)
	p.DryRun = true
	if err != nil {
		p.Error, p.Exit = err.Error(), exitFailed
		w.say("%v", err)
	}
	if w.json {
		_ = json.NewEncoder(w.out).Encode(p) // the sink remembers
		return p.Exit
	}
	for _, t := range p.Targets {
		fmt.Fprintf(w.out, "%s: jobs=%d once=%d\n", t.Name, t.Jobs, t.Once)
	}
	fmt.Fprintf(w.out, "dry run, nothing was sent: jobs=%d once=%d in_doubt=%d earlier=%d corrupt=%d lines=%d payload_bytes=%d\n",
		p.Jobs, p.Once, p.InDoubt, p.Earlier, p.Corrupt, p.Lines, p.Payload)
	return p.Exit
}

func (w *work) planOf(ctx context.Context, wrong error) (p planned, err error) {
	in := &counted{r: w.in}
	defer in.Close()
	if wrong != nil {
		return p, wrong
	}
	t, parts, payload, err := target.Plan(w.to, w.target)
	if err != nil {
		return p, err
	}
	if w.resume != "" {
		past, err := state.Load(w.resume)
		if err == nil {
			err = errors.Join(past.Matches(w.resume, w.origin(parts)), w.checkInput(past))
		}
		if err != nil {
			return p, err
		}
		w.options.Past = past
	}
	w.options.Corrupt, w.options.Rate = w.corrupt, 0
	r, err := submit.New(w.options)
	if err != nil {
		return p, err
	}
	a, err := r.Run(ctx, in, t)
	p = planned{
		Jobs: a.Answered, Once: a.Once, InDoubt: a.Maybe, Earlier: a.Earlier, Corrupt: a.Corrupt, Lines: a.Lines,
		Payload: payload.Load(), Exit: exitDone,
	}
	for i, part := range parts {
		pp := plannedPart{Name: part.Name}
		if i < len(r.Parts()) {
			pp.Jobs, pp.Once = r.Parts()[i].Answered, r.Parts()[i].Once
		}
		p.Targets = append(p.Targets, pp)
	}
	return p, err
}

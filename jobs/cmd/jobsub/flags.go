package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// flags are the options that all commands share.
type flags struct {
	to      []string
	ids     string
	rate    float64
	window  int
	retries int
	noRetry bool
	outage  time.Duration
	drain   time.Duration
	report  string
	json    bool
	quiet   bool
}

// add defines them; bench has its targets as arguments, and no report.
func (f *flags) add(c *cobra.Command, bench bool) {
	fs := c.Flags()
	if !bench {
		fs.StringArrayVar(&f.to, "to", f.to, "`TARGET` to submit to, see jobsub help; given several times, jobs are spread over them by hash of their ids")
		fs.StringVar(&f.report, "report", "", "write the jobs that were not taken to `FILE`, as NDJSON with line, id, fate and error")
		fs.StringVar(&f.ids, "ids", f.ids, "which jobs a Redis server remembers by id, so that each is there once: auto (those that bring an id), always (file name and line too), never")
	}
	fs.Float64Var(&f.rate, "rate", 0, "jobs per second; 0 = as fast as the server answers")
	fs.IntVar(&f.window, "window", 4096, "jobs in flight")
	fs.IntVar(&f.retries, "retries", 0, "send a job that may have been taken up to `N` more times: none is lost, and without ids some may be there twice (default 16 for jobs whose id is remembered, else none)")
	fs.BoolVar(&f.noRetry, "no-retry", false, "never send a job again that may have been taken: without ids that is the default")
	fs.DurationVar(&f.outage, "max-outage", 30*time.Second, "how long a job waits while the server is away; then the run ends")
	fs.DurationVar(&f.drain, "drain", 10*time.Second, "how long an interrupted run waits for answers")
	fs.BoolVar(&f.json, "json", false, "write the account to standard output as JSON")
	fs.BoolVar(&f.quiet, "quiet", false, "show no progress")
	c.MarkFlagsMutuallyExclusive("retries", "no-retry")
}

// targetOptions returns all faults at once.
func (f *flags) targetOptions() (target.Options, error) {
	o := target.Options{Retries: f.retries, MaxOutage: f.outage}
	var errs []error
	if f.retries < 0 {
		errs = append(errs, fmt.Errorf("--retries is %d: want 0 to 1000", f.retries))
	}
	if f.noRetry {
		o.Retries = -1
	}
	ids, err := target.ParseIDs(f.ids)
	o.IDs = ids
	return o, errors.Join(append(errs, err, target.Check(f.to, o))...)
}

func (f *flags) submitOptions() submit.Options {
	o := submit.Options{Window: f.window, Rate: f.rate, Drain: f.drain, Hopeless: hopeless}
	if f.drain == 0 {
		o.Drain = -1
	}
	return o
}

// shown are the targets, for showing.
func (f *flags) shown() []string {
	s := slices.Clone(f.to)
	for i := range s {
		s[i] = target.Redact(s[i])
	}
	return s
}

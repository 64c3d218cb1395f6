package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// flags are the options that submit and demo share.
type flags struct {
	to      string
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

func (f *flags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.to, "to", f.to, "`TARGET`: embedded: or redis://[user:password@]host:port/db?stream=NAME")
	fs.Float64Var(&f.rate, "rate", 0, "jobs per second; 0 = as fast as the server answers")
	fs.IntVar(&f.window, "window", 4096, "jobs in flight")
	fs.IntVar(&f.retries, "retries", 0, "send a job that may have been taken up to `N` more times: none is lost, some may be there twice")
	fs.BoolVar(&f.noRetry, "no-retry", false, "never send a job again that may have been taken (the default): none is there twice, some may be in doubt")
	fs.DurationVar(&f.outage, "max-outage", 30*time.Second, "how long a job waits while the server is away; then the run ends")
	fs.DurationVar(&f.drain, "drain", 10*time.Second, "how long an interrupted run waits for answers")
	fs.StringVar(&f.report, "report", "", "write the jobs that were not taken to `FILE`, as NDJSON with line, id, fate and error")
	fs.BoolVar(&f.json, "json", false, "write the account to standard output as JSON")
	fs.BoolVar(&f.quiet, "quiet", false, "show no progress")
	c.MarkFlagsMutuallyExclusive("retries", "no-retry")
}

func (f *flags) targetOptions() target.Options {
	return target.Options{Retries: f.retries, MaxOutage: f.outage}
}

func (f *flags) submitOptions() submit.Options {
	o := submit.Options{Window: f.window, Rate: f.rate, Drain: f.drain, Hopeless: hopeless}
	if f.drain == 0 {
		o.Drain = -1
	}
	return o
}

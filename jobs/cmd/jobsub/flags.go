package main

import (
	"fmt"
	"math"
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
	bad     []error // of values that could not be read
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
	fs.IntVar(&f.retries, "retries", 0, "send a job that may have been taken up to `N` more times: none is lost, and without ids some may be there twice; 0 = never (default 16 for jobs whose id is remembered, else never)")
	fs.BoolVar(&f.noRetry, "no-retry", false, "never send a job again that may have been taken: without ids that is the default")
	fs.DurationVar(&f.outage, "max-outage", 30*time.Second, "how long a job waits while the server is away or refuses to serve; then the run ends")
	fs.DurationVar(&f.drain, "drain", 10*time.Second, "how long an interrupted run waits for answers; 0s = not at all")
	fs.BoolVar(&f.json, "json", false, "write the account to standard output as JSON")
	fs.BoolVar(&f.quiet, "quiet", false, "show no progress")
	f.soften(c, "rate", "window", "retries", "max-outage", "drain")
}

// value is what a flag has.
type value interface {
	String() string
	Set(string) error
	Type() string
}

// soft is a value that keeps what it cannot read as a fault, to be told with all others.
type soft struct {
	value
	name string
	bad  *[]error
}

// Set never fails.
func (s soft) Set(text string) error {
	if s.value.Set(text) != nil {
		want := map[string]string{"duration": "a duration such as 30s or 500ms", "float64": "a number"}[s.Type()]
		if want == "" {
			want = "a whole number"
		}
		*s.bad = append(*s.bad, fmt.Errorf("--%s is %q: want %s", s.name, text, want))
	}
	return nil
}

// soften makes flags keep what they cannot read.
func (f *flags) soften(c *cobra.Command, names ...string) {
	for _, name := range names {
		flag := c.Flags().Lookup(name)
		flag.Value = soft{flag.Value, name, &f.bad}
	}
}

// faults says what is wrong with the options that all commands share and with the targets, all at once, and returns
// how to open these.
func (f *flags) faults(c *cobra.Command) (o target.Options, faults []error) {
	faults = slices.Clone(f.bad)
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if f.rate < 0 || f.rate > 1e9 || math.IsNaN(f.rate) {
		bad("--rate is %v: want 0 to 1e9", f.rate)
	}
	if f.window < 1 || f.window > 1<<20 {
		bad("--window is %d: want 1 to %d", f.window, 1<<20)
	}
	if f.outage < time.Millisecond {
		bad("--max-outage is %v: want at least 1ms", f.outage)
	}
	if f.drain < 0 {
		bad("--drain is %v: want at least 0s", f.drain)
	}
	o = target.Options{Retries: f.retries, MaxOutage: f.outage}
	if f.retries < 0 || f.retries > 1000 {
		bad("--retries is %d: want 0 to 1000", f.retries)
		o.Retries = 0
	}
	if c.Flags().Changed("retries") && f.retries == 0 {
		o.Retries = -1 // said, and not only left out
	}
	if f.noRetry {
		o.Retries = -1
		if c.Flags().Changed("retries") {
			bad("--retries and --no-retry are both given: want one of them")
		}
	}
	if c.Flags().Changed("report") && f.report == "" {
		bad("--report is empty: want the name of a file")
	}
	var err error
	if o.IDs, err = target.ParseIDs(f.ids); err != nil {
		bad("--ids is %q: want auto, always or never", f.ids)
	}
	if len(f.to) == 0 {
		bad("--to is not given: want at least one TARGET, see jobsub help")
		return o, faults
	}
	if err := target.Check(f.to, o); err != nil {
		faults = append(faults, err)
	}
	return o, faults
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

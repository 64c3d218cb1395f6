package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// benchWork is one run of bench.
type benchWork struct {
	std
	flags
	jobs   int64
	during time.Duration
	size   int
	own    bool // the jobs bring ids
}

func benchCommand(s std, code *int) *cobra.Command {
	b := &benchWork{std: s, flags: flags{ids: "auto"}}
	c := &cobra.Command{
		Use:     "bench TARGET...",
		Short:   "Submit generated jobs and measure rate, latency and processor time",
		Long:    benchHelp,
		Example: benchExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			b.to = args
			*code, err = b.do(c)
			return err
		},
	}
	b.add(c, true)
	fs := c.Flags()
	fs.Int64Var(&b.jobs, "jobs", 100_000, "how many jobs")
	fs.DurationVar(&b.during, "for", 0, "submit for that long instead of --jobs")
	fs.IntVar(&b.size, "size", 512, "payload of a job in `BYTES`")
	fs.BoolVar(&b.own, "with-ids", false, "give the jobs ids, so that a Redis server remembers them")
	b.soften(c, "jobs", "for", "size")
	return c
}

// measured is what bench prints with --json. Durations are in nanoseconds.
type measured struct {
	Jobs      int64         `json:"jobs"` // answered
	Open      int64         `json:"open"` // refused, not sent, maybe
	Elapsed   time.Duration `json:"elapsed_ns"`
	Rate      float64       `json:"rate"` // per second
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	Max       time.Duration `json:"max_ns"`
	CPUPerJob time.Duration `json:"cpu_per_job_ns"` // -1: this system does not tell
	PerWrite  float64       `json:"jobs_per_write"`
	Size      int           `json:"size_bytes"`
	Targets   []string      `json:"targets"`
	Error     string        `json:"error,omitempty"`
	Exit      int           `json:"exit"`
}

func (b *benchWork) do(c *cobra.Command) (code int, err error) {
	none := measured{CPUPerJob: -1, Size: b.size, Targets: b.shown()}
	o, errs := b.faults(c)
	so := b.submitOptions()
	so.Format = submit.FormatLines
	if b.own {
		so.Format = submit.FormatNDJSON
	}
	so.MaxLine = b.size + 1<<10
	if b.jobs < 1 {
		errs = append(errs, fmt.Errorf("--jobs is %d: want at least 1", b.jobs))
	}
	if b.during < 0 || b.during == 0 && c.Flags().Changed("for") {
		errs = append(errs, fmt.Errorf("--for is %v: want more than 0", b.during))
	}
	if c.Flags().Changed("jobs") && c.Flags().Changed("for") {
		errs = append(errs, errors.New("--jobs and --for are both given: want one of them"))
	}
	if b.size < minPayload || b.size > 64<<20 {
		errs = append(errs, fmt.Errorf("--size is %d: want %d to %d", b.size, minPayload, 64<<20))
	}
	if err := errors.Join(errs...); err != nil {
		return b.print(none, err)
	}
	r, err := submit.New(so)
	if err != nil {
		return b.print(none, err)
	}
	ctx, calm := interruptible(c.Context(),
		func() { fmt.Fprintf(b.err, "interrupted: up to %v for what is in flight\n", b.drain) }, func() {})
	defer calm()
	t, err := target.Open(ctx, b.to, o)
	if err != nil && ctx.Err() != nil {
		err = submit.ErrInterrupted
	}
	if err != nil {
		return b.print(none, err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()

	in := newGenerator(b.jobs, b.size, b.own)
	if b.during > 0 {
		in.until(time.Now().Add(b.during))
	}
	m := newMeter(t)
	known := &work{std: b.std, flags: b.flags}
	if b.during == 0 {
		known.jobs = b.jobs
	}
	bar := newProgress(known, r, &counted{r: in})
	before, told := cpuTime()
	account, runErr := r.Run(ctx, in, m)
	after, _ := cpuTime()
	bar.stop()
	res := measured{
		Jobs: account.Answered - account.Failed, Elapsed: account.Elapsed, Rate: account.Rate(),
		P50: m.taken.quantile(0.5), P99: m.taken.quantile(0.99), Max: m.taken.quantile(1),
		CPUPerJob: -1, Size: b.size, Targets: b.shown(), Exit: exitDone,
	}
	res.Open = account.Accepted - res.Jobs
	if told {
		res.CPUPerJob = (after - before) / time.Duration(max(1, account.Accepted))
	}
	if e := t.Engine(); e.Writes > 0 {
		res.PerWrite = float64(e.Sent) / float64(e.Writes)
	}
	return b.print(res, runErr)
}

func (b *benchWork) print(m measured, err error) (int, error) {
	switch {
	case errors.Is(err, submit.ErrInterrupted):
		m.Exit = exitInterrupted
	case err != nil, m.Open > 0:
		m.Exit = exitFailed
	}
	if err != nil {
		m.Error = err.Error()
		b.say("%v", err)
	}
	if b.json {
		return m.Exit, json.NewEncoder(b.out).Encode(m)
	}
	cpu := "?"
	if m.CPUPerJob >= 0 {
		cpu = m.CPUPerJob.String()
	}
	_, err = fmt.Fprintf(b.out, "bench: jobs=%d open=%d size=%d elapsed=%v rate=%.0f/s p50=%v p99=%v max=%v cpu_per_job=%s jobs_per_write=%.1f\n",
		m.Jobs, m.Open, m.Size, m.Elapsed.Round(time.Millisecond), m.Rate, short(m.P50), short(m.P99), short(m.Max), cpu, m.PerWrite)
	return m.Exit, err
}

func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

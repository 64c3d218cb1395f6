// Package run carries out a plan: it starts the servers, runs the rows of each table in turn, one client process per
// cell, compares what each client says with what the server counted, and repeats a cell when the machine was not
// quiet. It knows the order and the clock of a run; what the numbers mean is for package plan.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/load"
	"github.com/fdengine/fullduplex/bench/peers/plan"
	"github.com/fdengine/fullduplex/bench/peers/procs"
)

const (
	cellGrace = 60 * time.Second // for a cell to start, drain and end, beside what it measures
	maxRepeat = 2                // times that a disturbed cell is repeated
)

// Options say how to run.
type Options struct {
	Program  string        // this program, which is also each client and the servers that are not installed ones
	Unyield  string        // the same program with an engine that does not yield; empty: rows that need it are left out
	Bars     []plan.Bar    // what they compare is measured side by side
	Earlier  plan.Set      // an earlier result, which says who is worth comparing before this one does; may be nil
	Budget   time.Duration // once it is used up, disturbed cells are not repeated any more; 0 = no bound
	Profiles string        // directory for a CPU profile of each cell of the engine; empty: none
	Progress io.Writer     // one line per cell
}

// Quiet tells how quiet the machine was.
type Quiet struct {
	Reference float64 `json:"reference_ns"` // CPU per op of the raw limit when it was quiet
	Cells     int     `json:"cells"`
	Disturbed int     `json:"disturbed"` // cells that stayed disturbed
	Repeated  int     `json:"repeated"`
}

// Run measures tables in place. A cell that fails ends the run, unless its contender has no such face.
func Run(ctx context.Context, o Options, tables []plan.Table) (Quiet, error) {
	null, err := procs.Null(o.Program, "server")
	if err != nil {
		return Quiet{}, err
	}
	r := &runner{Options: o, null: null.Addr, start: time.Now()}
	if r.meter, err = newMeter(null.Addr); err != nil {
		return Quiet{}, errors.Join(err, null.Close())
	}
	for i := range tables {
		tables[i].Elect(tables, o.Earlier)
		if err = r.table(ctx, &tables[i]); err != nil {
			break
		}
	}
	r.quiet.Reference = r.meter.reference()
	return r.quiet, errors.Join(err, r.meter.close(), null.Close())
}

type runner struct {
	Options
	null  string
	meter *meter
	start time.Time
	quiet Quiet
}

// table runs all rows of t, round by round.
func (r *runner) table(ctx context.Context, t *plan.Table) error {
	s, err := server(r.Program, t.Server)
	if err != nil {
		fmt.Fprintf(r.Progress, "%s is left out: %v\n", t.ID, err)
		return nil
	}
	if s == nil {
		return r.rounds(ctx, t, r.null)
	}
	return errors.Join(r.rounds(ctx, t, s.Addr), s.Close())
}

// server starts what a table has for all its cells; nil: it uses the null server of the run, or one for each cell.
func server(program, kind string) (*procs.Server, error) {
	switch kind {
	case "redis":
		return procs.Redis()
	case "slow":
		return procs.Null(program, "server", strconv.Itoa(plan.SlowPace()))
	}
	return nil, nil
}

func (r *runner) rounds(ctx context.Context, t *plan.Table, addr string) error {
	common := t.Common()
	for round := 0; ; round++ {
		if round == common {
			t.Extend(r.Bars)
		}
		rows := t.Order(r.Bars, r.Earlier.Table(t.ID), round)
		if len(rows) == 0 {
			return nil
		}
		for _, row := range rows {
			if row.Unyield && r.Unyield == "" {
				continue
			}
			err := r.cell(ctx, t, row, addr)
			if errors.Is(err, errMissing) {
				fmt.Fprintf(r.Progress, "%s is left out: %v\n", t.ID, err)
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", t.ID, err)
			}
		}
	}
}

// cell runs a row once, and again while the machine is disturbed and there is time; the quietest try counts.
func (r *runner) cell(ctx context.Context, t *plan.Table, row *plan.Row, addr string) error {
	var best load.Result
	noise := -1.0
	for try := 0; ; try++ {
		before, err := r.meter.recent()
		if err != nil {
			return err
		}
		res, err := r.once(ctx, t, row, addr)
		if err != nil {
			return err
		}
		after, err := r.meter.read()
		if err != nil {
			return err
		}
		disturbed := r.meter.disturbance(before, after)
		if noise < 0 || disturbed < noise {
			best, noise = res, disturbed
		}
		if noise <= quietEnough || try == maxRepeat || r.Budget > 0 && time.Since(r.start) > r.Budget {
			break
		}
		r.quiet.Repeated++
	}
	r.quiet.Cells++
	mark := ""
	if noise > quietEnough {
		r.quiet.Disturbed++
		row.Disturbed++
		mark = fmt.Sprintf("  disturbed x%.1f", noise)
	}
	row.Results = append(row.Results, best)
	fmt.Fprintf(r.Progress, "%5.0fs  %-16s %-26s %9.0f ns %11.0f ops/s  p99 %8.0f us%s\n",
		time.Since(r.start).Seconds(), t.ID, row.Label, best.CPU, best.Rate, best.P99/1000, mark)
	return nil
}

var errMissing = errors.New("the server cannot be started")

// once runs one client process and checks it against the server's own count.
func (r *runner) once(ctx context.Context, t *plan.Table, row *plan.Row, addr string) (load.Result, error) {
	who, err := contend.Find(row.Contender)
	if err != nil {
		return load.Result{}, err
	}
	if t.Server == "beanstalkd" { // a new one each time: jobs stay in its memory
		s, err := procs.Beanstalkd()
		if err != nil {
			return load.Result{}, fmt.Errorf("%w: %w", errMissing, err)
		}
		defer s.Close()
		addr = s.Addr
	}
	count := counter(t.Server)
	from, err := count(addr)
	if err != nil {
		return load.Result{}, err
	}
	spec, program := t.Spec(row), r.Program
	spec.Contender, spec.Addr, spec.Rate = row.Contender, addr, t.Rate(row)
	if spec.Spinners < 0 {
		spec.Spinners = max(1, runtime.GOMAXPROCS(0)+spec.Spinners)
	}
	if r.Profiles != "" && who.Group == contend.Ours {
		spec.Profile = profilePath(r.Profiles, t.ID, row.Label, len(row.Results))
	}
	if row.Unyield {
		program = r.Unyield
	}
	if row.Proxy {
		p, err := procs.Null(r.Program, "delay", addr, row.Delay.String())
		if err != nil {
			return load.Result{}, err
		}
		defer p.Close()
		spec.Addr = p.Addr
	}
	ctx, cancel := context.WithTimeout(ctx, spec.Warm+spec.Length+cellGrace)
	defer cancel()
	res, err := procs.Client(ctx, program, spec)
	if err != nil {
		return res, err
	}
	res.Offered = spec.Rate
	to, err := count(addr)
	if err != nil {
		return res, err
	}
	return res, honest(row.Label, who, spec.Face, res.Total, to-from)
}

// honest compares what a client says with what its server counted.
func honest(label string, who contend.Contender, f load.Face, said, counted int64) error {
	switch {
	case who.NoIO, said == counted:
		return nil
	case f == load.Flood && said < counted: // what was given up is counted as well
		return nil
	}
	return fmt.Errorf("%s says it was answered %d times, the server counted %d", label, said, counted)
}

func counter(server string) func(addr string) (int64, error) {
	switch server {
	case "redis":
		return procs.CountedRedis
	case "beanstalkd":
		return procs.CountedBeanstalkd
	}
	return procs.CountedNull
}

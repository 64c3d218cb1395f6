package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/plan"
	"github.com/fdengine/fullduplex/bench/peers/report"
	"github.com/fdengine/fullduplex/bench/peers/run"
)

// settings are the flags of a comparison.
type settings struct {
	quick    bool
	bars     string
	size     plan.Size
	results  string
	profiles string
	budget   time.Duration
	redraw   string
	publish  string
}

func parse(args []string) (s settings, err error) {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.BoolVar(&s.quick, "quick", false, "the engine and, for each bar, the two peers that were best in the last full result")
	f.StringVar(&s.bars, "bars", "", "only what these bars need, such as B1,B7.64")
	f.DurationVar(&s.size.Cell, "cell", 0, "length of one measurement (default 1s, quick 250ms)")
	f.IntVar(&s.size.Rounds, "rounds", 3, "measurements of each contender")
	f.IntVar(&s.size.Compared, "compared", 0, "measurements of those that a bar compares (default 5, quick 3)")
	f.IntVar(&s.size.Extra, "extra", 0, "measurements of arrivals, long ways and large values (default 3, quick 1)")
	f.IntVar(&s.size.Pairs, "pairs", 0, "measurements of those whose tail latencies are compared (default 9, quick 5)")
	f.StringVar(&s.results, "results", "results", "directory for the result files; empty: write none")
	f.StringVar(&s.profiles, "profiles", "", "existing directory for CPU profiles of the engine; empty: take none")
	f.DurationVar(&s.budget, "budget", 0, "after this, disturbed measurements are not repeated (default 8m, quick 20s)")
	f.StringVar(&s.redraw, "redraw", "", "measure nothing: write tables, chart and bars of this result file again, beside it")
	f.StringVar(&s.publish, "publish", "", "measure nothing: put the newest full result into README.md and docs of this directory")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	d, budget := plan.Size{Cell: time.Second, Compared: 5, Pairs: 9, Extra: 3}, plan.FullBudget
	if s.quick {
		d, budget = plan.Size{Cell: 250 * time.Millisecond, Compared: 3, Pairs: 5, Extra: 1}, plan.QuickBudget
	}
	s.size.Cell = cmp.Or(s.size.Cell, d.Cell)
	s.size.Compared = cmp.Or(s.size.Compared, d.Compared)
	s.size.Pairs = cmp.Or(s.size.Pairs, d.Pairs)
	s.size.Extra = cmp.Or(s.size.Extra, d.Extra)
	s.budget = cmp.Or(s.budget, budget)
	return s, s.size.Validate()
}

func (s settings) kind() report.Kind {
	switch {
	case s.bars != "":
		return report.Part
	case s.quick:
		return report.Quick
	}
	return report.Full
}

// compare measures, writes the result files, and prints the tables and one line per bar.
func compare(ctx context.Context, args []string) error {
	s, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case s.redraw != "":
		return redraw(s.redraw)
	case s.publish != "":
		return publish(s.publish, s.results)
	}
	last, err := report.LastFull(s.results)
	if err != nil {
		return err
	}
	bars, tables, err := choose(s, last)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o := run.Options{Program: program, Profiles: s.profiles, Budget: s.budget, Progress: os.Stderr, Bars: bars}
	if last != nil {
		o.Earlier = last.Tables
	}
	for _, b := range bars {
		if strings.HasPrefix(b.ID, "B9") && o.Unyield == "" {
			if o.Unyield, err = run.BuildUnyield(ctx, dir); err != nil {
				fmt.Fprintln(os.Stderr, "B9 is not measured:", err)
				break
			}
		}
	}
	rep := &report.Report{
		Date: time.Now().UTC(), Command: strings.Join(append([]string{"peers"}, args...), " "), Kind: s.kind(),
		Machine: report.ThisMachine(), Peers: report.Versions(), Size: s.size, Tables: tables,
	}
	if rep.Quiet, err = run.Run(ctx, o, tables); err != nil {
		return err
	}
	rep.Judge(bars)
	return show(rep, s.results)
}

// choose returns what is to be measured, for which bars. last is the last full result; it may be nil.
func choose(s settings, last *report.Report) ([]plan.Bar, []plan.Table, error) {
	var names []string
	if s.bars != "" {
		names = strings.Split(s.bars, ",")
	}
	bars, err := plan.Choose(names)
	if err != nil {
		return nil, nil, err
	}
	tables := plan.Needed(plan.Tables(s.size), bars)
	if s.quick {
		if last == nil {
			fmt.Fprintln(os.Stderr, "there is no full result yet: all contenders are measured")
		} else {
			plan.Narrow(tables, bars, last.Tables)
		}
	}
	return bars, tables, nil
}

// show writes the files and prints.
func show(rep *report.Report, dir string) error {
	fmt.Print(rep.Markdown(), "\n")
	for _, o := range rep.Bars {
		fmt.Println(o)
	}
	if dir == "" {
		return nil
	}
	return wrote(rep.Write(dir))
}

func wrote(paths []string, err error) error {
	for _, p := range paths {
		fmt.Fprintln(os.Stderr, "wrote", p)
	}
	return err
}

// redraw judges what is in a result file again, and writes it and what is made of it.
func redraw(path string) error {
	rep, err := report.Read(path)
	if err != nil {
		return err
	}
	rep.Rejudge()
	for _, o := range rep.Bars {
		fmt.Println(o)
	}
	return wrote(rep.WriteAs(strings.TrimSuffix(path, filepath.Ext(path))))
}

// publish fills the places that the documents of a directory have for the newest full result.
func publish(dir, results string) error {
	last, err := report.LastFull(results)
	if err != nil {
		return err
	}
	if last == nil {
		return fmt.Errorf("there is no full result in %s", results)
	}
	to, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	from, err := filepath.Abs(results)
	if err != nil {
		return err
	}
	if from, err = filepath.Rel(to, from); err != nil {
		return err
	}
	return wrote(last.Publish(dir, filepath.ToSlash(from)))
}

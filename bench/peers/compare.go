package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
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
}

func parse(args []string) (s settings, err error) {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.BoolVar(&s.quick, "quick", false, "the engine and, for each bar, the two peers that were best in the last full result")
	f.StringVar(&s.bars, "bars", "", "only what these bars need, such as B1,B7.64")
	f.DurationVar(&s.size.Cell, "cell", 0, "length of one measurement (default 1s, quick 300ms)")
	f.IntVar(&s.size.Rounds, "rounds", 3, "measurements of each contender")
	f.IntVar(&s.size.Pairs, "pairs", 0, "measurements of those whose tail latencies are compared (default 9, quick 5)")
	f.StringVar(&s.results, "results", "results", "directory for the result files; empty: write none")
	f.StringVar(&s.profiles, "profiles", "", "existing directory for CPU profiles of the engine; empty: take none")
	f.DurationVar(&s.budget, "budget", 0, "after this, disturbed measurements are not repeated (default 18m, quick 1m)")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	cell, pairs, budget := time.Second, 9, 18*time.Minute
	if s.quick {
		cell, pairs, budget = 300*time.Millisecond, 5, time.Minute
	}
	if s.size.Cell == 0 {
		s.size.Cell = cell
	}
	if s.size.Pairs == 0 {
		s.size.Pairs = pairs
	}
	if s.budget == 0 {
		s.budget = budget
	}
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
	bars, tables, err := choose(s)
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
	o := run.Options{Program: program, Profiles: s.profiles, Budget: s.budget, Progress: os.Stderr}
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
	for _, b := range bars {
		rep.Bars = append(rep.Bars, b.Judge(rep.Tables))
	}
	return show(rep, s.results)
}

// choose returns what is to be measured, for which bars.
func choose(s settings) ([]plan.Bar, []plan.Table, error) {
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
		last, err := report.LastFull(s.results)
		if err != nil {
			return nil, nil, err
		}
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
	paths, err := rep.Write(dir)
	for _, p := range paths {
		fmt.Fprintln(os.Stderr, "wrote", p)
	}
	return err
}

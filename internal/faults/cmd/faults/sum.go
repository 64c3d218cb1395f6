package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/internal/faults/tally"
)

// count is what a job has done.
type count struct{ scenarios, programs, cuts int }

func (c count) String() string {
	return fmt.Sprintf("scenarios=%d programs=%d cuts=%d", c.scenarios, c.programs, c.cuts)
}

// sum runs jobs and adds up.
type sum struct {
	out    io.Writer
	seed   uint64
	dir    string // holds what failed jobs printed
	count  count
	failed int
}

// shown is how many of the last lines of a failed job are printed, beside those that say what failed.
const shown = 40

// do runs one job by start, which writes what the tests print to log.
func (s *sum) do(ctx context.Context, j job, start func(ctx context.Context, j job, log *os.File) error) {
	begin := time.Now()
	name := filepath.Join(s.dir, strings.NewReplacer("/", "-", " ", "-").Replace(j.name)+".log")
	c, err := s.logged(ctx, j, name, start)
	s.count.scenarios += c.scenarios
	s.count.programs += c.programs
	s.count.cuts += c.cuts
	verdict, how := "ok  ", ""
	if err != nil {
		s.failed++
		verdict = "FAIL"
	}
	if j.race {
		how = " race"
	}
	_, _ = fmt.Fprintf(s.out, "%s %-24s %v %.1fs%s\n", verdict, j.name, c, time.Since(begin).Seconds(), how)
	if err == nil {
		_ = os.Remove(name)
		return
	}
	_, _ = fmt.Fprintf(s.out, "     %v\n     all it printed, and a program that fails: %s\n", err, name)
	for _, line := range j.again() {
		_, _ = fmt.Fprintf(s.out, "     again: %s\n", line)
	}
	_, _ = io.WriteString(s.out, excerpt(name))
}

// logged runs one job into a file and returns what it counted.
func (s *sum) logged(ctx context.Context, j job, name string, start func(context.Context, job, *os.File) error) (c count, err error) {
	log, err := os.Create(name)
	if err != nil {
		return c, err
	}
	err = start(ctx, j, log)
	if err = errors.Join(err, log.Close()); err == nil {
		c.programs = j.programs // of one that failed, nobody knows
	}
	text, readErr := os.ReadFile(name)
	found := false
	for line := range strings.Lines(string(text)) {
		var t count
		if n, _ := fmt.Sscanf(line, tally.Line, &t.scenarios, &t.programs, &t.cuts); n == 3 {
			c.scenarios, c.programs, c.cuts = c.scenarios+t.scenarios, c.programs+t.programs, c.cuts+t.cuts
			found = true
		}
	}
	if j.counts && !found && err == nil {
		err = errors.New("it did not say what it counted")
	}
	return c, errors.Join(err, readErr)
}

// excerpt is the lines of a log that name failed tests, and its last ones, without those of tests that passed.
func excerpt(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error() + "\n"
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "=== ") || strings.HasPrefix(strings.TrimLeft(l, " "), "--- PASS")
	})
	var out strings.Builder
	last := max(0, len(lines)-shown)
	for i, line := range lines {
		if i >= last || strings.Contains(line, "--- FAIL") {
			out.WriteString("     | " + line + "\n")
		}
	}
	return out.String()
}

// finish prints the last line, removes the folder when nothing is in it, and returns whether nothing failed.
func (s *sum) finish() bool {
	if s.failed == 0 {
		_ = os.RemoveAll(s.dir)
	}
	_, _ = fmt.Fprintf(s.out, "faults: %v failed=%d seed=%d\n", s.count, s.failed, s.seed)
	return s.failed == 0
}

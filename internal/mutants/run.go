package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Runner builds and runs tests on mutated code. The zero values of the optional fields are usable. It blocks in child
// processes, which end with the context.
type Runner struct {
	Root    string        // of the repository; nothing in it is written
	Work    string        // an empty directory for overlays and binaries
	Go      string        // the go command; empty: "go"
	Timeout time.Duration // of one test binary; zero: two minutes
	Times   int           // how often the killers of a mutant are run, to go red each time; zero: once
}

// Verdict says what became of a mutant. The zero value is the cautious one.
type Verdict uint8

const (
	Survived Verdict = iota // no test noticed: one is missing
	Lucky                   // a test went red sometimes
	Killed                  // a test went red, each time
)

// Result is the outcome of one mutant.
type Result struct {
	Verdict Verdict
	By      string // the test that went red, or how it ended otherwise
	Took    time.Duration
}

var errHang = errors.New("ran out of time")

// Run applies m and runs its killers until one goes red. An error says that nothing was proven: the change does not
// apply or does not compile, or the tests ran out of time although the mutant is none that hangs.
func (r *Runner) Run(ctx context.Context, m Mutant) (Result, error) {
	start := time.Now()
	overlay, err := r.overlay(m)
	if err != nil {
		return Result{}, err
	}
	var res Result
	for i, k := range m.Kill {
		times := max(r.Times, 1)
		reds, by, err := r.test(ctx, k, fmt.Sprintf("%s-%d", m.Name, i), overlay, times, m.Hangs)
		if err != nil {
			return res, fmt.Errorf("mutant %s: %s: %w", m.Name, k.Pkg, err)
		}
		if reds == times {
			res.Verdict, res.By = Killed, by
			break
		}
		if reds > 0 {
			res.Verdict, res.By = Lucky, fmt.Sprintf("%s, %d times of %d", by, reds, times)
		}
	}
	res.Took = time.Since(start)
	return res, nil
}

// Unchanged runs all killers on the code as it is: a test that is red without a mutant proves nothing.
func (r *Runner) Unchanged(ctx context.Context, ms []Mutant) error {
	runs := map[string][]string{}
	var pkgs []string
	for _, m := range ms {
		for _, k := range m.Kill {
			if runs[k.Pkg] == nil {
				pkgs = append(pkgs, k.Pkg)
			}
			if !slices.Contains(runs[k.Pkg], k.Run) {
				runs[k.Pkg] = append(runs[k.Pkg], k.Run)
			}
		}
	}
	slices.Sort(pkgs)
	var faults []error
	for i, pkg := range pkgs {
		reds, by, err := r.test(ctx, Killer{pkg, strings.Join(runs[pkg], "|")}, fmt.Sprintf("unchanged-%d", i), "", 1, false)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("without a mutant: %s: %w", pkg, err))
		case reds > 0:
			faults = append(faults, fmt.Errorf("without a mutant: %s is red already: %s", pkg, by))
		}
	}
	return errors.Join(faults...)
}

// overlay writes the mutated file and the file that tells the go command of it.
func (r *Runner) overlay(m Mutant) (string, error) {
	file := filepath.Join(r.Root, filepath.FromSlash(m.File))
	src, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	mutated, err := m.Apply(string(src))
	if err != nil {
		return "", err
	}
	body := filepath.Join(r.Work, m.Name+".go.txt")
	if err := os.WriteFile(body, []byte(mutated), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: body}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(r.Work, m.Name+".json")
	return name, os.WriteFile(name, list, 0o600)
}

// test builds the tests of a package and runs those of k as often as times says, or until none has failed. reds is how
// often one failed, by says which. hangs: to run out of time is to fail, and not an error.
func (r *Runner) test(ctx context.Context, k Killer, name, overlay string, times int, hangs bool) (reds int, by string, err error) {
	tool := r.Go
	if tool == "" {
		tool = "go"
	}
	binary := filepath.Join(r.Work, name+".test.exe")
	defer func() { _ = os.Remove(binary) }() // one less than a directory full
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, tool, append(args, "./"+k.Pkg)...)
	build.Dir = r.Root
	if out, err := build.CombinedOutput(); err != nil {
		return 0, "", fmt.Errorf("does not compile: %w\n%s", err, out)
	}
	for range times {
		who, err := r.once(ctx, k, binary)
		if errors.Is(err, errHang) && hangs {
			who, err = "running out of time", nil
		}
		if err != nil {
			return 0, "", err
		}
		if who != "" {
			reds, by = reds+1, who
		} else if reds == 0 {
			break // it may fail the next time, but luck is no proof
		}
	}
	return reds, by, nil
}

// once runs the tests of k; by is what failed, empty for nothing.
func (r *Runner) once(ctx context.Context, k Killer, binary string) (by string, err error) {
	timeout := r.Timeout
	if timeout == 0 {
		timeout = 2 * time.Minute
	}
	run := exec.CommandContext(ctx, binary, "-test.run", k.Run, "-test.failfast", "-test.timeout", timeout.String())
	run.Dir = filepath.Join(r.Root, filepath.FromSlash(k.Pkg))
	out, err := run.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil && strings.Contains(string(out), "no tests to run"):
		return "", fmt.Errorf("no test matches %s", k.Run)
	case err == nil:
		return "", nil
	case !errors.As(err, &failed):
		return "", err
	case strings.Contains(string(out), "panic: test timed out"):
		return "", fmt.Errorf("%w after %v", errHang, timeout)
	}
	return blame(string(out)), nil
}

var (
	failLine  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	panicLine = regexp.MustCompile(`(?m)^(panic|fatal error): .*`)
)

// blame finds in the output of a red test binary what went red.
func blame(out string) string {
	if m := failLine.FindAllStringSubmatch(out, -1); m != nil {
		return m[len(m)-1][1]
	}
	if m := panicLine.FindString(out); m != "" {
		return m
	}
	if strings.Contains(out, "goleak:") {
		return "goleak"
	}
	return "exit status"
}

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
}

// Verdict says what became of a mutant. The zero value is the cautious one.
type Verdict uint8

const (
	Survived Verdict = iota // no test noticed: one is missing
	Killed                  // a test went red
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
		red, by, err := r.test(ctx, k, fmt.Sprintf("%s-%d", m.Name, i), overlay)
		if errors.Is(err, errHang) && m.Hangs {
			red, by, err = true, "running out of time", nil
		}
		if err != nil {
			return res, fmt.Errorf("mutant %s: %s: %w", m.Name, k.Pkg, err)
		}
		if red {
			res.Verdict, res.By = Killed, by
			break
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
		red, by, err := r.test(ctx, Killer{pkg, strings.Join(runs[pkg], "|")}, fmt.Sprintf("unchanged-%d", i), "")
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("without a mutant: %s: %w", pkg, err))
		case red:
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

// test builds the tests of a package and runs those of k. red: one of them failed, by says which.
func (r *Runner) test(ctx context.Context, k Killer, name, overlay string) (red bool, by string, err error) {
	tool, timeout := r.Go, r.Timeout
	if tool == "" {
		tool = "go"
	}
	if timeout == 0 {
		timeout = 2 * time.Minute
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
		return false, "", fmt.Errorf("does not compile: %w\n%s", err, out)
	}
	run := exec.CommandContext(ctx, binary, "-test.run", k.Run, "-test.failfast", "-test.timeout", timeout.String())
	run.Dir = filepath.Join(r.Root, filepath.FromSlash(k.Pkg))
	out, err := run.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, "", ctx.Err()
	case err == nil && strings.Contains(string(out), "no tests to run"):
		return false, "", fmt.Errorf("no test matches %s", k.Run)
	case err == nil:
		return false, "", nil
	case !errors.As(err, &failed):
		return false, "", err
	case strings.Contains(string(out), "panic: test timed out"):
		return false, "", fmt.Errorf("%w after %v", errHang, timeout)
	}
	return true, blame(string(out)), nil
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

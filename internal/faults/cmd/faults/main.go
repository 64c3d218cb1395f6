// Command faults runs everything that `make faults` is: the full counts of the test packages under internal/faults, and
// the model test of the engine, one after the other, from one seed. It prints each result as it comes, and at the end
//
//	faults: scenarios=N programs=M cuts=K failed=F seed=S
//
// Its exit status is 1 when anything failed. What a failed run printed is kept in a file that is named. It knows how
// tests are built and started and what they count; it knows nothing of what they test.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/fdengine/fullduplex/internal/house"
)

func main() {
	var seed = flag.Uint64("seed", 0, "seed of all runs; 0 = a random one")
	var programs = flag.Int("programs", 100_000, "programs of the model test; 0 = leave it out")
	var only = flag.String("only", "", "run only what has this in its name")
	flag.Parse()
	if *seed == 0 {
		*seed = 1 + uint64(rand.Uint32())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, *seed, *programs, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
	}
	if !ok || err != nil {
		stop()
		os.Exit(1)
	}
}

// run plans and runs. An error means that it could not even begin.
func run(ctx context.Context, seed uint64, programs int, only string) (ok bool, err error) {
	fmt.Printf("seed %d\n", seed)
	root, err := house.Root()
	if err != nil {
		return false, err
	}
	packages, err := list(ctx, root)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("faults-%d-", seed))
	if err != nil {
		return false, err
	}
	jobs := plan(packages, seed, programs, runtime.NumCPU())
	s := &sum{out: os.Stdout, seed: seed, dir: dir}
	jobs = slices.DeleteFunc(jobs, func(j job) bool { return !strings.Contains(j.name, only) })
	if len(jobs) == 0 {
		return false, fmt.Errorf("there is nothing with %q in its name", only)
	}
	for _, j := range jobs {
		if ctx.Err() != nil {
			break
		}
		s.do(ctx, j, func(ctx context.Context, j job, log *os.File) error { return test(ctx, root, dir, j, log) })
	}
	ok = s.finish()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return ok, nil
}

// short is an import path without the module.
func short(importPath string) string {
	return strings.TrimPrefix(path.Clean(importPath), house.ModulePath+"/")
}

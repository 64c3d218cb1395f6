// Package tally counts what the fault tests did, so that `make faults` can say it in one line, and holds the
// two flags they share: how much to do and from which seed. It is for tests only.
//
// Every test package under internal/faults wraps its *testing.M with Counted. With -faults.full the tests run their
// full counts, without it the short ones that belong to `make test`.
package tally

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
)

var (
	full = flag.Bool("faults.full", false, "run the full counts, those of make faults")
	seed = flag.Uint64("faults.seed", 1, "seed of everything that is random in the fault tests")

	scenarios, programs, cuts atomic.Int64
)

// Full reports whether the full counts are wanted.
func Full() bool { return *full }

// Seed is the seed of this run; a test derives its own source from it with Rand.
func Seed() uint64 { return *seed }

// Rand is a source that depends on the seed of the run and on stream, so that tests do not share one.
func Rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, stream)) }

// Count chooses between the short and the full count of a loop.
func Count(short, long int) int {
	if *full {
		return long
	}
	return short
}

// Scenario counts n finished scenarios: one scripted story, judged.
func Scenario(n int) { scenarios.Add(int64(n)) }

// Program counts n finished random programs.
func Program(n int) { programs.Add(int64(n)) }

// Cut counts n connections that were cut, reset, frozen or half closed on purpose.
func Cut(n int) { cuts.Add(int64(n)) }

// Line is what Counted prints and what the runner reads.
const Line = "faults-tally scenarios=%d programs=%d cuts=%d\n"

// A Runner runs the tests of a package, as *testing.M does.
type Runner interface{ Run() int }

// Counted runs m and then, if the full counts were asked for, prints what was counted to out. Use it as
//
//	goleak.VerifyTestMain(tally.Counted(m, os.Stdout))
func Counted(m Runner, out io.Writer) Runner { return counted{m, out} }

type counted struct {
	m   Runner
	out io.Writer
}

func (c counted) Run() int {
	code := c.m.Run()
	if *full {
		_, _ = fmt.Fprintf(c.out, Line, scenarios.Load(), programs.Load(), cuts.Load())
	}
	return code
}

package fdengine_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var (
	modelSeed     = flag.Uint64("model.seed", 0, "run the one program of this seed; 0 = many")
	modelFirst    = flag.Uint64("model.first", 1, "the first seed of many")
	modelPrograms = flag.Int("model.programs", 500, "how many programs to run")
	modelRepeat   = flag.Int("model.repeat", 1, "how often to run each program")
	modelPatience = flag.Duration("model.patience", 2*time.Minute, "of real time, for one program")
	modelFailures = flag.Int("model.failures", 3, "stop after that many")
	modelShrink   = flag.Duration("model.shrink", 0, "spend that long on making a failing program smaller")
	modelVerbose  = flag.Bool("model.dump", false, "print each program before it runs")
)

// TestModel runs random programs on the engine and holds what a recording network, a counting server and the callers
// saw against the promises P1 to P11. A failure prints its seed; -model.seed runs it again.
//
// Covers: E-1, E-2, E-3, E-4, E-5, E-6, E-8, E-11, E-14, E-18, E-19, E-34, E-35, E-41, E-42, E-44, E-46, A-7
func TestModel(t *testing.T) {
	first, last := *modelFirst, *modelFirst+uint64(*modelPrograms)
	if *modelSeed != 0 {
		first, last = *modelSeed, *modelSeed+1
	}
	failed := 0
	for seed := first; seed < last && failed < *modelFailures; seed++ {
		for range *modelRepeat {
			p := generate(seed)
			if *modelVerbose {
				fmt.Println(p.dump())
			}
			// Real time, outside the bubble: a program that goes round in circles never gets there in fake time.
			spinning := time.AfterFunc(*modelPatience, func() {
				panic(fmt.Sprintf("program %d does not end:\n%s", seed, p.dump()))
			})
			res := execute(t, p)
			spinning.Stop()
			if len(res.bad) > 0 {
				failed++
				if *modelShrink > 0 {
					p, res = shrink(t, p, res, *modelShrink)
				}
				t.Errorf("program %d breaks a promise:\n%s\n\n%s\n%s", seed, strings.Join(res.bad, "\n"), p.dump(), res.details)
				break
			}
		}
	}
}

// Command mutants breaks the library in small ways, one at a time and never in the tree itself, and shows that a
// test notices each.
//
//	mutants            all of them
//	mutants -only X    those whose name matches the regular expression X
//	mutants -times N   the killing tests N times, to go red each time
//	mutants -list      what there is
//
// Its last line is "mutants: N killed=K". The exit status is 1 when one survived, does not apply any more or does not
// compile, when one is killed in some of the runs only, or when a test is red without any.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/fdengine/fullduplex/internal/house"
	"github.com/fdengine/fullduplex/internal/mutants"
)

func main() {
	only := flag.String("only", "", "run those whose name matches this regular expression")
	list := flag.Bool("list", false, "list them and run nothing")
	timeout := flag.Duration("timeout", 2*time.Minute, "of one test binary")
	times := flag.Int("times", 1, "how often the killing tests of a mutant are run")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var chosen []mutants.Mutant
	for _, m := range mutants.Table() {
		if wanted.MatchString(m.Name) {
			chosen = append(chosen, m)
		}
	}
	if *list {
		for _, m := range chosen {
			fmt.Printf("%-32s %-24s %s\n", m.Name, m.File, m.Breaks)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	killed, err := run(ctx, chosen, *timeout, *times)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Printf("mutants: %d killed=%d\n", len(chosen), killed)
	if err != nil || killed < len(chosen) || len(chosen) == 0 {
		os.Exit(1)
	}
}

// run tries each and prints its line. The error is of what is needed to try at all.
func run(ctx context.Context, ms []mutants.Mutant, timeout time.Duration, times int) (killed int, err error) {
	root, err := house.Root()
	if err != nil {
		return 0, err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(work) }() // best effort: it lies in the directory for such things
	r := mutants.Runner{Root: root, Work: work, Timeout: timeout, Times: times}
	if err := r.Unchanged(ctx, ms); err != nil {
		return 0, err
	}
	fmt.Println("all tests of the table pass on the code as it is")
	for _, m := range ms {
		res, err := r.Run(ctx, m)
		switch {
		case ctx.Err() != nil:
			return killed, ctx.Err()
		case err != nil:
			fmt.Printf("ERROR     %-32s %v\n", m.Name, err)
		case res.Verdict == mutants.Killed:
			killed++
			fmt.Printf("killed    %-32s %4.0f s  by %s\n", m.Name, res.Took.Seconds(), res.By)
		case res.Verdict == mutants.Lucky:
			fmt.Printf("LUCKY     %-32s by %s\n", m.Name, res.By)
		default:
			fmt.Printf("SURVIVED  %-32s %s\n", m.Name, m.Breaks)
		}
	}
	return killed, nil
}

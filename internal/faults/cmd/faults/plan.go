package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/fdengine/fullduplex/internal/house"
)

const (
	// tallyPath is the package that counts and that defines the flags.
	tallyPath = house.ModulePath + "/internal/faults/tally"
	// ownPath is this command, which reads what tallyPath prints.
	ownPath = house.ModulePath + "/internal/faults/cmd/faults"
)

// pkg is a package with tests.
type pkg struct {
	path   string
	counts bool // its tests know the flags of tallyPath, and count
}

// job is one package tested in one way. Jobs of the same package share its binary.
type job struct {
	name     string
	pkg      string // import path
	race     bool
	args     []string // of the test binary
	shards   [][]string
	counts   bool // it prints a tally
	programs int  // what it runs, when it does not
}

// withoutRace is the packages whose full counts take too long under the race detector, and why. Their short counts
// run under it in `make test`.
var withoutRace = map[string]string{
	"internal/faults/cases": "bounds on time and memory, at sizes where the race detector takes ten times of both",
}

// list finds the packages with tests below internal/faults. Their test binaries, as `go list` describes them, show
// whether they depend on the flags.
func list(ctx context.Context, root string) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-test", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./internal/faults/...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	return parseList(string(out)), nil
}

func parseList(out string) (packages []pkg) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		// "a/b.test" is the binary; "a/b [a/b.test]" are packages compiled for it.
		if path, ok := strings.CutSuffix(f[0], ".test"); ok && (len(f) == 1 || !strings.HasPrefix(f[1], "[")) {
			packages = append(packages, pkg{path, slices.Contains(f[1:], tallyPath)})
		}
	}
	return packages
}

// plan makes the jobs: the packages in order of their names, the model last, in as many processes as there are cores.
func plan(packages []pkg, seed uint64, programs, cores int) (jobs []job) {
	for _, p := range packages {
		j := job{name: short(p.path), pkg: p.path, counts: p.counts && p.path != tallyPath && p.path != ownPath}
		_, slow := withoutRace[j.name]
		j.race = !slow
		if j.counts {
			j.args = []string{"-faults.full", "-faults.seed=" + strconv.FormatUint(seed, 10)}
		}
		jobs = append(jobs, j)
	}
	if programs > 0 {
		jobs = append(jobs, model(seed, programs, max(cores, 1)))
	}
	return jobs
}

// model runs other programs for each seed, and spends a minute on making one that fails smaller.
func model(seed uint64, programs, shards int) job {
	j := job{
		name: "fdengine model", pkg: house.ModulePath + "/fdengine", programs: programs,
		args: []string{"-test.run=^TestModel$", "-model.shrink=1m"},
	}
	first := seed*uint64(programs) + 1
	for i := range shards {
		n := programs / shards
		if i < programs%shards {
			n++
		}
		if n > 0 {
			j.shards = append(j.shards, []string{fmt.Sprintf("-model.first=%d", first), fmt.Sprintf("-model.programs=%d", n)})
			first += uint64(n)
		}
	}
	return j
}

// again is the command line that runs the job by itself.
func (j job) again() []string {
	line := "go test -count=1 -v -timeout=" + timeout
	if j.race {
		line += " -race"
	}
	line += " ./" + short(j.pkg) + " " + strings.TrimSpace(strings.Join(goTestFlags(j.args), " "))
	if len(j.shards) == 0 {
		return []string{line}
	}
	var out []string
	for _, s := range j.shards {
		out = append(out, line+" "+strings.Join(s, " "))
	}
	return out
}

// goTestFlags spells the flags of a test binary as `go test` takes them.
func goTestFlags(args []string) []string {
	out := slices.Clone(args)
	for i := range out {
		if rest, ok := strings.CutPrefix(out[i], "-test."); ok {
			out[i] = "-" + strings.ReplaceAll(rest, "$", `\$`)
		}
	}
	return out
}

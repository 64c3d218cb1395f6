package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/house"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// played is what a job of a test prints and returns.
type played struct {
	text string
	err  error
}

// play runs jobs that do not exist and returns what is printed, and whether all is well.
func play(t *testing.T, jobs []job, by map[string]played) (out, dir string, ok bool) {
	t.Helper()
	var b bytes.Buffer
	s := &sum{out: &b, seed: 9, dir: t.TempDir()}
	for _, j := range jobs {
		s.do(context.Background(), j, func(_ context.Context, j job, log *os.File) error {
			_, err := log.WriteString(by[j.name].text)
			require.NoError(t, err)
			return by[j.name].err
		})
	}
	ok = s.finish()
	return b.String(), s.dir, ok
}

func TestTheTalliesAreAddedUp(t *testing.T) {
	out, dir, ok := play(t, []job{{name: "a", counts: true, race: true}, {name: "b"}, {name: "model", programs: 100}}, map[string]played{
		"a": {text: "noise\n" + fmt.Sprintf(tally.Line, 1, 2, 3) + fmt.Sprintf(tally.Line, 10, 20, 30) + "PASS\n"},
		"b": {text: "PASS\n"},
	})
	require.True(t, ok)
	require.True(t, strings.HasSuffix(out, "\nfaults: scenarios=11 programs=122 cuts=33 failed=0 seed=9\n"), out)
	require.Regexp(t, `(?m)^ok   a +scenarios=11 programs=22 cuts=33 [0-9.]+s race$`, out)
	require.NoDirExists(t, dir)
}

func TestAFailedJobIsShownAndKeptAndTheOthersGoOn(t *testing.T) {
	out, dir, ok := play(t, []job{
		{name: "x/a", pkg: house.ModulePath + "/x/a", counts: true, race: true, args: []string{"-faults.full", "-faults.seed=9"}},
		{name: "b", counts: true},
		{name: "c", counts: true},
		model(9, 100, 1),
	}, map[string]played{
		"x/a":            {"    --- FAIL: TestA\n=== RUN   TestB\n--- PASS: TestB\n" + strings.Repeat("noise\n", 100) + fmt.Sprintf(tally.Line, 1, 0, 0), errors.New("exit status 1")},
		"b":              {text: "PASS\n"},
		"c":              {text: fmt.Sprintf(tally.Line, 5, 0, 0)},
		"fdengine model": {"panic", errors.New("exit status 2")},
	})
	require.False(t, ok)
	require.True(t, strings.HasSuffix(out, "\nfaults: scenarios=6 programs=0 cuts=0 failed=3 seed=9\n"), out)
	require.Contains(t, out, "     |     --- FAIL: TestA\n")
	require.Equal(t, shown-1, strings.Count(out, "| noise\n"))
	require.NotContains(t, out, "TestB")
	require.Contains(t, out, "again: go test -count=1 -v -timeout=30m -race ./x/a -faults.full -faults.seed=9\n")
	require.Contains(t, out, "it did not say what it counted", "a package that ends before its last line has failed")
	require.Contains(t, out, `-run=^TestModel\$ -model.shrink=1m -model.first=901 -model.programs=100`)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3, "what passed is removed")
}

func TestTheModelRunsEachProgramOnce(t *testing.T) {
	j := model(7, 100_000, 3)
	next := uint64(700_001)
	total := 0
	for _, s := range j.shards {
		var first uint64
		var n int
		_, err := fmt.Sscanf(strings.Join(s, " "), "-model.first=%d -model.programs=%d", &first, &n)
		require.NoError(t, err)
		require.Equal(t, next, first)
		next += uint64(n)
		total += n
	}
	require.Equal(t, 100_000, total)
	require.False(t, j.race)
	require.Len(t, model(1, 2, 8).shards, 2, "no process without a program: none would mean the default")
}

func TestThePackagesAreFoundByListing(t *testing.T) {
	root, err := house.Root()
	require.NoError(t, err)
	packages, err := list(t.Context(), root)
	require.NoError(t, err)
	counts := map[string]bool{}
	for _, j := range plan(packages, 5, 0, 1) {
		counts[j.name] = j.counts
		if j.counts {
			require.Equal(t, []string{"-faults.full", "-faults.seed=5"}, j.args)
		} else {
			require.Empty(t, j.args)
		}
	}
	require.Contains(t, counts, "internal/faults/proxy")
	require.True(t, counts["internal/faults/soak"])
	require.False(t, counts["internal/faults/proxy"], "it does not know the flags")
	require.False(t, counts["internal/faults/tally"])
	require.False(t, counts["internal/faults/cmd/faults"])
}

func TestOnlyTestBinariesOfAListingArePackagesWithTests(t *testing.T) {
	require.Equal(t, []pkg{{"m/a", false}, {"m/b", true}}, parseList(
		"m/a fmt\nm/a.test m/a testing\nm/a [m/a.test] fmt\nm/none fmt\nm/b.test "+tallyPath+" testing\n"+
			"m/b.test [m/b.test] x\n"))
}

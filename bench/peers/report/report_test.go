package report

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/bench/peers/load"
	"github.com/fdengine/fullduplex/bench/peers/plan"
	"github.com/fdengine/fullduplex/bench/peers/run"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func known(v float64) *float64 { return &v }

// sample is a small report in which everything occurs.
func sample() *Report {
	row := func(label, contender string, cpu ...float64) plan.Row {
		r := plan.Row{Label: label, Contender: contender, Rounds: len(cpu)}
		for _, c := range cpu {
			r.Results = append(r.Results, load.Result{
				Ops: 1000, Total: 1200, Seconds: 1, CPU: c, Rate: 1e9 / c, P50: c, P99: 90 * c, P999: 900 * c, PerWrite: 12, PerRead: 345,
			})
		}
		return r
	}
	blocking := func(n int, scale float64) plan.Table {
		t := plan.Table{
			ID: "blocking", Title: "Blocking", Server: "null", Cell: load.Spec{Face: load.Blocking, Callers: n},
			Rows: []plan.Row{
				row("raw limit", "raw limit", 380/scale), row("wake floor", "wake floor", 400), row("noop", "noop", 8),
				row("fullduplex", "fullduplex", 1000/scale, 1100/scale, 5000/scale), row(plan.Again, "fullduplex", 1000/scale),
				row("rueidis", "rueidis", 4_000_000/scale), {Label: "radix", Contender: "radix", Rounds: 3},
			},
		}
		t.Rows[3].Disturbed = 1
		return t
	}
	return &Report{
		Date: time.Date(2030, 5, 6, 7, 8, 9, 0, time.UTC), Command: "peers -cell 1s", Kind: Full,
		Machine: Machine{System: "linux/amd64", CPU: "a processor", CPUs: 2, Go: "go1.26", Load: "0.10"},
		Peers:   map[string]string{"example.org/peer": "v1.2.3"},
		Size:    plan.Size{Cell: time.Second, Rounds: 3, Compared: 5, Pairs: 9, Extra: 3},
		Quiet:   run.Quiet{Reference: 380, Cells: 30, Disturbed: 1, Repeated: 2},
		Bars: []plan.Outcome{
			{ID: "B1.64", What: "CPU", Ratio: known(0.52), Low: 0.48, High: 0.61, Against: "rueidis", Must: known(0.75), Goal: known(0.6), State: plan.OK, Reached: true},
			{ID: "B3", What: "rate", Ratio: known(0.5), Low: 0.4, High: 0.6, Must: known(0.95), AtLeast: true, State: plan.Short, Reached: true, Noise: 1.1},
			{ID: "B9.1", What: "p99", Must: known(1.3), State: plan.Unmeasured},
		},
		Tables: plan.Set{blocking(1, 1), blocking(64, 2), {
			ID: "put", Title: "Jobs", Server: "beanstalkd", Cell: load.Spec{Face: load.Blocking, Callers: 64}, Rows: []plan.Row{row("go-beanstalk", "go-beanstalk", 25)},
		}, special()[0], special()[1], special()[2], special()[3]},
	}
}

// special are tables with columns of their own.
func special() []plan.Table {
	one := func(label string, cell load.Spec, res load.Result) plan.Row {
		return plan.Row{Label: label, Contender: "fullduplex", Rounds: 1, Cell: &cell, Results: []load.Result{res}}
	}
	large := one("fullduplex SET 1 MiB", load.Spec{Face: load.Blocking, Value: 1 << 20}, load.Result{CPU: 300_000, Rate: 2000, P50: 1e6, P99: 2e6, P999: 3e6, Bytes: 12_000})
	far := one("window 1024", load.Spec{Face: load.Async, Engine: 1024}, load.Result{CPU: 300, Rate: 50_000, PerWrite: 500, PerRead: 400})
	far.Delay = 20 * time.Millisecond
	near := one("no delay", load.Spec{Face: load.Async, Engine: 1024}, load.Result{CPU: 300, Rate: 1_000_000})
	return []plan.Table{
		{ID: "open.null", Title: "Arrivals", Cell: load.Spec{Face: load.Open}, Rows: []plan.Row{
			one("fullduplex 50 %", load.Spec{Face: load.Open}, load.Result{
				CPU: 2000, Offered: 100_000, Rate: 99_000, P50: 60_000, P99: 200_000, P999: 900_000, Max: 3e6, Late: 70_000, PerWrite: 3,
			}),
		}},
		{ID: "large", Title: "Large", Rows: []plan.Row{large}},
		{ID: "far", Title: "Far", Rows: []plan.Row{far, near}},
		{ID: "slow", Title: "Slow", Cell: load.Spec{Face: load.Flood}, Rows: []plan.Row{
			one("values of 1 KiB", load.Spec{Face: load.Flood, Value: 1024}, load.Result{CPU: 90_000, Rate: 9000, Peak: 110e6, Limit: 134e6}),
		}},
	}
}

func TestTheTablesLookAsTheyShould(t *testing.T) {
	golden := filepath.Join("testdata", "report.md")
	got := sample().Markdown()
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestThePictureHasALineForEachContenderAndTheFloor(t *testing.T) {
	svg, err := sample().Chart()
	require.NoError(t, err)
	require.Contains(t, string(svg), "<svg")
	for _, s := range []string{"fullduplex", "rueidis", "raw limit + wake floor", "blocking callers", "CPU per operation", "operations per second", ">64<", ">10 us<", ">100 k<"} {
		require.Contains(t, string(svg), s)
	}
	require.NotContains(t, string(svg), "radix", "it was not measured")
	_, err = (&Report{}).Chart()
	require.NoError(t, err, "a run without blocking tables has an empty picture")
}

func TestTheLastFullReportIsFoundAgain(t *testing.T) {
	dir := t.TempDir()
	r, err := LastFull(dir)
	require.NoError(t, err)
	require.Nil(t, r)

	full := sample()
	paths, err := full.Write(dir)
	require.NoError(t, err)
	require.Len(t, paths, 3)
	require.FileExists(t, filepath.Join(dir, "2030-05-06.json"))
	older, later := sample(), sample()
	older.Date = full.Date.AddDate(0, 0, -1)
	later.Date, later.Kind = full.Date.AddDate(0, 0, 1), Quick
	for _, x := range []*Report{older, later} {
		_, err := x.Write(dir)
		require.NoError(t, err)
	}
	require.FileExists(t, filepath.Join(dir, "2030-05-07-quick.json"))
	r, err = LastFull(dir)
	require.NoError(t, err)
	require.Equal(t, full, r)
}

func TestTheMachineSaysWhatItIs(t *testing.T) {
	m := ThisMachine()
	require.NotEmpty(t, m.System)
	require.Positive(t, m.CPUs)
	require.Contains(t, m.Go, "go")
}

func TestAResultFileCanBeDrawnAgain(t *testing.T) {
	dir := t.TempDir()
	_, err := sample().Write(dir)
	require.NoError(t, err)
	r, err := Read(filepath.Join(dir, "2030-05-06.json"))
	require.NoError(t, err)
	require.Equal(t, sample(), r)
	r.Tables[0].ID, r.Tables[1].ID = "blocking.1", "blocking.64"
	part := *r
	part.Kind = Part
	r.Rejudge()
	at := func(r *Report, id string) int {
		return slices.IndexFunc(r.Bars, func(o plan.Outcome) bool { return o.ID == id })
	}
	require.InDelta(t, 500.0/2_000_000, *r.Bars[at(r, "B1.64")].Ratio, 1e-9, "by what was measured")
	require.GreaterOrEqual(t, at(r, "B8.do"), 0, "by a bar that was not there then")
	require.Equal(t, plan.Unmeasured, r.Bars[at(r, "B9.1")].State, "what was said is kept when the tables do not say it")
	require.Negative(t, at(r, "B2"), "nothing is known of it")
	part.Rejudge()
	require.Len(t, part.Bars, 3, "a part only by what it was made for")
	_, err = Read(filepath.Join(dir, "2030-05-06.md"))
	require.Error(t, err)
}

func TestDocumentsAreFilledFromAResultAndOnlyBetweenTheMarks(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "docs"), 0o755))
	readme, performance := filepath.Join(dir, "README.md"), filepath.Join(dir, "docs", "PERFORMANCE.md")
	_, err := sample().Publish(dir, "results")
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, f := range []string{readme, performance} {
		require.NoError(t, os.WriteFile(f, []byte("before\n"), 0o600))
	}
	_, err = sample().Publish(dir, "results")
	require.ErrorIs(t, err, errNoPlace)
	for _, f := range []string{readme, performance} {
		require.NoError(t, os.WriteFile(f, []byte("before\n"+placeBegin+"\nold\n"+placeEnd+"\nafter\n"), 0o600))
	}
	for range 2 { // again: nothing piles up
		paths, err := sample().Publish(dir, "results")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{readme, performance}, paths)
		got, err := os.ReadFile(readme)
		require.NoError(t, err)
		text := string(got)
		require.True(t, strings.HasPrefix(text, "before\n"+placeBegin+"\n") && strings.HasSuffix(text, placeEnd+"\nafter\n"), text)
		require.NotContains(t, text, "old")
		require.Contains(t, text, "| **fullduplex** | 1000 ns | 500 ns |")
		require.Contains(t, text, "(results/2030-05-06.svg)")
		require.Contains(t, text, "1 of the 3 limits")
		require.Equal(t, 1, strings.Count(text, "| rueidis |"))
		got, err = os.ReadFile(performance)
		require.NoError(t, err)
		require.Contains(t, string(got), "\n### Beside other clients, 2030-05-06")
		require.Contains(t, string(got), "\n#### Bars\n")
		require.NotContains(t, string(got), "old")
	}
}

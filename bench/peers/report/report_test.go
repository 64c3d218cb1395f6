package report

import (
	"flag"
	"os"
	"path/filepath"
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
		Size:    plan.Size{Cell: time.Second, Rounds: 3, Pairs: 9},
		Quiet:   run.Quiet{Reference: 380, Cells: 30, Disturbed: 1, Repeated: 2},
		Bars: []plan.Outcome{
			{ID: "B1.64", What: "CPU", Ratio: known(0.52), Against: "rueidis", Must: known(0.75), Goal: known(0.6), State: plan.OK, Reached: true},
			{ID: "B3", What: "rate", Ratio: known(0.5), Must: known(0.95), AtLeast: true, State: plan.Short, Reached: true, Noise: 1.1},
			{ID: "B9.1", What: "p99", Must: known(1.3), State: plan.Unmeasured},
		},
		Tables: plan.Set{blocking(1, 1), blocking(64, 2), {
			ID: "put", Title: "Jobs", Server: "beanstalkd", Cell: load.Spec{Face: load.Blocking, Callers: 64}, Rows: []plan.Row{row("go-beanstalk", "go-beanstalk", 25)},
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
	for _, s := range []string{"fullduplex", "rueidis", "raw limit + wake floor", "blocking callers", "CPU per operation", "operations per second", ">64<"} {
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

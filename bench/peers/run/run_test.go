package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/delay"
	"github.com/fdengine/fullduplex/bench/peers/load"
	"github.com/fdengine/fullduplex/bench/peers/nullserver"
	"github.com/fdengine/fullduplex/bench/peers/plan"
)

// TestMain makes this test binary the server and the clients of a run. A client of "rueidis" lies.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "delay" {
		d, err := time.ParseDuration(os.Args[3])
		if err != nil {
			os.Exit(1)
		}
		p, err := delay.Listen("127.0.0.1:0", os.Args[2], d)
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(p.Addr())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == "server" {
		s, err := nullserver.Listen("127.0.0.1:0")
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(s.Addr())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == "client" {
		var s load.Spec
		if json.NewDecoder(os.Stdin).Decode(&s) != nil {
			os.Exit(1)
		}
		r := load.Result{Ops: 7, Total: 7}
		if s.Contender != "rueidis" {
			var err error
			if r, err = load.Run(context.Background(), s); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		_ = json.NewEncoder(os.Stdout).Encode(r)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func table(rows ...plan.Row) []plan.Table {
	return []plan.Table{{
		ID: "t", Server: "null", Rows: rows,
		Cell: load.Spec{Face: load.Blocking, Callers: 4, Warm: 10 * time.Millisecond, Length: 20 * time.Millisecond},
	}}
}

func TestRowsAreRunInTurnAsOftenAsTheyWant(t *testing.T) {
	ts := table(
		plan.Row{Label: "a", Contender: "raw limit", Rounds: 1},
		plan.Row{Label: "b", Contender: "fullduplex", Rounds: 2},
		plan.Row{Label: "c", Contender: "noop", Rounds: 2},
		plan.Row{Label: "d", Contender: "fullduplex", Rounds: 2, Unyield: true},
	)
	q, err := Run(t.Context(), Options{Program: os.Args[0], Budget: 1, Progress: io.Discard}, ts)
	require.NoError(t, err)
	require.Equal(t, 5, q.Cells)
	require.Positive(t, q.Reference)
	rows := ts[0].Rows
	for i, want := range []int{1, 2, 2, 0} {
		require.Len(t, rows[i].Results, want, rows[i].Label)
		for _, r := range rows[i].Results {
			require.Positive(t, r.Ops)
		}
	}
}

func TestAClientThatSaysMoreThanTheServerCountedEndsTheRun(t *testing.T) {
	_, err := Run(t.Context(), Options{Program: os.Args[0], Progress: io.Discard}, table(plan.Row{Label: "liar", Contender: "rueidis", Rounds: 1}))
	require.ErrorContains(t, err, "liar says it was answered 7 times, the server counted 0")
}

func TestTheMeterKnowsWhenTheMachineIsNotQuiet(t *testing.T) {
	m := &meter{readings: []float64{100, 101, 102, 103, 400, 500, 300, 200}}
	require.Equal(t, 102.0, m.reference())
	require.InDelta(t, 1, m.disturbance(100, 102), 1e-9)
	require.Greater(t, m.disturbance(100, 400), quietEnough)
	require.Greater(t, m.disturbance(400, 100), quietEnough)
	m.last = time.Now()
	v, err := m.recent()
	require.NoError(t, err)
	require.Equal(t, 200.0, v, "what was read a moment ago is not read again")
}

// The engine has no option for it, so the tool builds one that does not yield: this fails when the constant is gone.
func TestTheEngineCanBeBuiltWithoutYields(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "..", "..", "fdengine", "gather.go"))
	require.NoError(t, err)
	patched, err := withoutYields(src)
	require.NoError(t, err)
	require.NotEqual(t, string(src), string(patched))
	require.Regexp(t, `yieldMax\s*=\s*0`, string(patched))
	_, err = withoutYields([]byte("package fdengine"))
	require.ErrorIs(t, err, errNoYields)
}

func TestWhatBarsCompareIsRunMoreOften(t *testing.T) {
	bars, err := plan.Choose([]string{"B2"})
	require.NoError(t, err)
	ts := table(plan.Row{Label: "fullduplex", Contender: "fullduplex", Rounds: 1}, plan.Row{Label: "raw limit", Contender: "raw limit", Rounds: 1},
		plan.Row{Label: "radix", Contender: "radix", Rounds: 1})
	ts[0].ID, ts[0].More = "blocking.16", 2
	_, err = Run(t.Context(), Options{Program: os.Args[0], Bars: bars, Budget: 1, Progress: io.Discard}, ts)
	require.NoError(t, err)
	for label, want := range map[string]int{"fullduplex": 2, "raw limit": 1, "radix": 2} {
		require.Len(t, ts[0].Row(label).Results, want, label)
	}
}

func TestARowCanBeFarAwayAndOfferedAShare(t *testing.T) {
	cell := load.Spec{Face: load.Blocking, Callers: 4, Warm: 10 * time.Millisecond, Length: 100 * time.Millisecond}
	open := load.Spec{Face: load.Open, Callers: 4, Warm: 10 * time.Millisecond, Length: 100 * time.Millisecond}
	ts := table(
		plan.Row{Label: "far", Contender: "fullduplex", Rounds: 1, Cell: &cell, Proxy: true, Delay: 20 * time.Millisecond},
		plan.Row{Label: "share", Contender: "fullduplex", Rounds: 1, Cell: &open, Group: 1, Offer: &plan.Offer{Share: 2, Of: "far"}},
	)
	_, err := Run(t.Context(), Options{Program: os.Args[0], Budget: 1, Progress: io.Discard}, ts)
	require.NoError(t, err)
	far, share := ts[0].Rows[0].Results[0], ts[0].Rows[1].Results[0]
	require.GreaterOrEqual(t, far.P50, 0.97*20e6, "a bucket of the histogram is three per cent wide")
	require.LessOrEqual(t, far.Rate, 4/0.02)
	require.Equal(t, 2*far.Rate, share.Offered)
}

func TestASlowServerMayHaveCountedWhatItsClientGaveUp(t *testing.T) {
	c := contend.Contender{}
	require.NoError(t, honest("x", c, load.Flood, 5, 7))
	require.Error(t, honest("x", c, load.Flood, 7, 5))
	require.Error(t, honest("x", c, load.Blocking, 5, 7))
	require.NoError(t, honest("x", contend.Contender{NoIO: true}, load.Blocking, 5, 0))
}

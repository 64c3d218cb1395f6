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

	"github.com/fdengine/fullduplex/bench/peers/load"
	"github.com/fdengine/fullduplex/bench/peers/nullserver"
	"github.com/fdengine/fullduplex/bench/peers/plan"
)

// TestMain makes this test binary the server and the clients of a run. A client of "rueidis" lies.
func TestMain(m *testing.M) {
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

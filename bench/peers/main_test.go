package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/bench/peers/load"
	"github.com/fdengine/fullduplex/bench/peers/report"
)

var result = load.Result{Ops: 1, CPU: 1, Rate: 1, P99: 1}

// TestMain makes this test binary the server and the clients that the tool starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"server", "client", "delay"}, os.Args[1]) {
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestAQuickRunAfterAFullOneMeasuresFewer(t *testing.T) {
	s, err := parse([]string{"-quick", "-results", t.TempDir()})
	require.NoError(t, err)
	_, all, err := choose(s, nil)
	require.NoError(t, err)
	full := &report.Report{Date: time.Now(), Kind: report.Full, Tables: all}
	for i := range full.Tables {
		for j := range full.Tables[i].Rows {
			full.Tables[i].Rows[j].Results = append(full.Tables[i].Rows[j].Results, result)
		}
	}
	_, err = full.Write(s.results)
	require.NoError(t, err)
	last, err := report.LastFull(s.results)
	require.NoError(t, err)
	_, few, err := choose(s, last)
	require.NoError(t, err)
	require.Len(t, few, len(all))
	require.Less(t, len(few[0].Rows), len(all[0].Rows))
}

func TestOneBarIsMeasuredAndWrittenFromEndToEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs a process for each of the contenders of a bar")
	}
	dir, made := t.TempDir(), []string{}
	require.NoError(t, command(t.Context(), []string{"-bars", "FAR.128,SLOW", "-cell", "50ms", "-extra", "1", "-budget", "1ns", "-results", dir}))
	for _, ending := range []string{"json", "md", "svg"} {
		found, err := filepath.Glob(filepath.Join(dir, "*-part."+ending))
		require.NoError(t, err)
		require.Len(t, found, 1)
		made = append(made, found[0])
	}
	for _, m := range made[1:] {
		require.NoError(t, os.Remove(m))
	}
	require.NoError(t, command(t.Context(), []string{"-redraw", made[0]}))
	for _, m := range made {
		require.FileExists(t, m)
	}
	require.ErrorContains(t, command(t.Context(), []string{"-publish", dir, "-results", dir}), "no full result")
}

func TestFlagsHaveDefaultsAndBounds(t *testing.T) {
	s, err := parse(nil)
	require.NoError(t, err)
	require.Equal(t, time.Second, s.size.Cell)
	require.Equal(t, 9, s.size.Pairs)
	require.Equal(t, report.Full, s.kind())
	s, err = parse([]string{"-quick", "-rounds", "5"})
	require.NoError(t, err)
	require.Equal(t, 250*time.Millisecond, s.size.Cell)
	require.Equal(t, 5, s.size.Rounds)
	require.Equal(t, report.Quick, s.kind())
	s, err = parse([]string{"-bars", "B1"})
	require.NoError(t, err)
	require.Equal(t, report.Part, s.kind())
	for _, bad := range [][]string{{"-cell", "1ms"}, {"-rounds", "0"}, {"what"}} {
		_, err := parse(bad)
		require.Error(t, err, "%v", bad)
	}
	require.Error(t, command(t.Context(), []string{"-bars", "B99"}))
}

package tally_test

import (
	"bytes"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/internal/faults/tally"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fakeRunner func() int

func (f fakeRunner) Run() int { return f() }

func TestTheCountsArePrintedOnlyForAFullRun(t *testing.T) {
	run := func() string {
		var out bytes.Buffer
		code := tally.Counted(fakeRunner(func() int {
			tally.Scenario(1)
			tally.Program(2)
			tally.Cut(3)
			return 7
		}), &out).Run()
		require.Equal(t, 7, code)
		return out.String()
	}
	require.Equal(t, 5, tally.Count(5, 10))
	require.Empty(t, run())

	require.NoError(t, flag.Set("faults.full", "true"))
	defer func() { require.NoError(t, flag.Set("faults.full", "false")) }()
	require.Equal(t, 10, tally.Count(5, 10))
	require.Equal(t, "faults-tally scenarios=2 programs=4 cuts=6\n", run())
}

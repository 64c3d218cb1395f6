package target_test

import (
	"context"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// make killrun raises these.
var (
	killJobs  = flag.Int("kill.jobs", 40_000, "jobs of the kill -9 tests")
	killCount = flag.Int("kill.count", 3, "kills of the kill -9 tests")
)

// killed submits jobs at 20,000 a second to a server that syncs each write to its disk and is killed and started
// again at even distances, and returns what became of them.
func killed(t *testing.T, o target.Options) (submit.Account, submit.Verdict, int64) {
	t.Helper()
	s := testserver.StartRedis(t, testserver.RedisOptions{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	to := open(t, streamURL(s, "in"), o)
	l := submit.NewLedger()
	r, err := submit.New(submit.Options{Ledger: l, Rate: 20_000})
	require.NoError(t, err)

	type ending struct {
		account submit.Account
		err     error
	}
	ended := make(chan ending, 1)
	go func() {
		a, err := r.Run(context.Background(), strings.NewReader(strings.Repeat("job\n", *killJobs)), to)
		ended <- ending{a, err}
	}()

	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var end ending
	for kill := 0; end.account.Accepted == 0; {
		select {
		case <-tick.C:
			at := int64(kill+1) * int64(*killJobs) / int64(*killCount+1)
			if kill < *killCount && r.Account().Answered >= at {
				kill++
				s.Kill9()
				s.Restart()
			}
		case end = <-ended:
			require.NoError(t, end.err)
			require.Equal(t, *killCount, kill, "all kills must fall into the run")
		}
	}
	require.NoError(t, to.ReadBack(context.Background(), l.Found))
	v := l.Verdict()
	t.Logf("%v verdict=%+v sessions=%d", end.account, v, to.Engine().Sessions)
	require.EqualValues(t, *killJobs, end.account.Accepted)
	require.Zero(t, end.account.Unsettled())
	require.Zero(t, end.account.Failed)
	require.GreaterOrEqual(t, to.Engine().Sessions, uint64(*killCount+1))
	return end.account, v, int64(s.Int("XLEN", "in"))
}

// Covers: E-4, E-5
func TestKill9LosesAndDoublesNoJobThatIsNeverRetried(t *testing.T) {
	a, v, present := killed(t, target.Options{})
	require.Equal(t, submit.Verdict{Landed: v.Landed}, v)
	require.Equal(t, a.Answered+v.Landed, present)
	require.LessOrEqual(t, present, a.Answered+a.Maybe)
	require.Zero(t, a.NotSent, "an outage shorter than MaxOutage fails no job that was not sent")
}

// Covers: E-4, E-6
func TestKill9LosesNoRetriedJobAndRunsNoneMoreOftenThanItWasSent(t *testing.T) {
	a, v, present := killed(t, target.Options{Retries: 10})
	require.Zero(t, v.Lost)
	require.Zero(t, v.Excess)
	require.Zero(t, v.Unsent)
	require.Zero(t, v.Strange)
	require.EqualValues(t, *killJobs, a.Answered, "every job is taken in the end")
	require.Equal(t, a.Answered+v.Duplicated, present)
}

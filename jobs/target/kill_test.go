package target_test

import (
	"context"
	"flag"
	"fmt"
	"io"
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
	killJobs  = flag.Int("kill.jobs", 6_000, "jobs of the kill -9 tests")
	killCount = flag.Int("kill.count", 3, "kills of the kill -9 tests")
)

// startDurable runs a redis-server that syncs each write to its disk.
func startDurable(t *testing.T) *testserver.Redis {
	return testserver.StartRedis(t, testserver.RedisOptions{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
}

// killable is a server of the tests.
type killable interface {
	Kill9()
	Restart()
}

// paced is an input that lets its reader pass each of some places only after the kill that was asked for at the place
// before is done, and a last one, behind which there are jobs, only after the last: each kill has a session behind it.
type paced struct {
	in    *strings.Reader
	every int64         // bytes between two places
	left  int           // places to come
	ask   chan struct{} // one for each place; cap: their number
	done  chan struct{} // one for each kill
	asked bool
}

func newPaced(in string, kills int) *paced {
	return &paced{
		in: strings.NewReader(in), every: int64(len(in) / (kills + 1)), left: kills,
		ask: make(chan struct{}, kills), done: make(chan struct{}),
	}
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	at := p.in.Size() - int64(p.in.Len())
	room := p.every - at%p.every
	if p.left == 0 && p.asked {
		if room = int64(p.in.Len()) - p.every/2; room <= 0 {
			<-p.done
			p.asked = false
			room = int64(p.in.Len())
		}
	}
	n, err := p.in.Read(b[:min(int64(len(b)), room)])
	if end := err == io.EOF; end || int64(n) == room && p.left > 0 {
		if p.asked {
			<-p.done
			p.asked = false
		}
		if !end {
			p.ask <- struct{}{}
			p.left, p.asked = p.left-1, true
		}
	}
	return n, err
}

// killed submits jobs to a server that is killed and started again at even distances, and returns what became of
// them. rate is jobs per second; 0 = all speed.
func killed(t *testing.T, s killable, spec, jobs string, rate float64, o target.Options) (submit.Account, submit.Verdict) {
	t.Helper()
	o.ReadBack = true
	to := open(t, spec, o)
	l := submit.NewLedger()
	r, err := submit.New(submit.Options{Ledger: l, Rate: rate})
	require.NoError(t, err)

	type ending struct {
		account submit.Account
		err     error
	}
	ended := make(chan ending, 1)
	in := newPaced(jobs, *killCount)
	go func() {
		a, err := r.Run(context.Background(), in, to)
		ended <- ending{a, err}
	}()

	had := int64(0)
	for kill := range *killCount {
		<-in.ask
		// Only a server that we have spoken with since its start is killed, so that each kill ends a session.
		require.Eventually(t, func() bool {
			return r.Account().Answered > had && to.Engine().Sessions > uint64(kill)
		}, 20*time.Second, time.Millisecond)
		s.Kill9()
		s.Restart()
		had = r.Account().Answered
		in.done <- struct{}{}
	}
	end := <-ended
	require.NoError(t, end.err)
	require.NoError(t, to.ReadBack(context.Background(), l.Found))
	v := l.Verdict()
	t.Logf("%v verdict=%+v sessions=%d", end.account, v, to.Engine().Sessions)
	require.EqualValues(t, *killJobs, end.account.Accepted)
	require.Zero(t, end.account.Unsettled())
	require.Zero(t, end.account.Failed)
	require.GreaterOrEqual(t, to.Engine().Sessions, uint64(*killCount+1))
	return end.account, v
}

// killRate makes the restarts fall between jobs, and not all behind them.
const killRate = 20_000

func withoutIDs() string { return numbered(*killJobs) }

func withIDs() string {
	var b strings.Builder
	for i := range *killJobs {
		fmt.Fprintf(&b, "{\"id\":\"job-%d\",\"payload\":%d}\n", i, i)
	}
	return b.String()
}

// never holds for jobs that are never sent again: present are those that the server has, by its own word.
func never(t *testing.T, a submit.Account, v submit.Verdict, present map[string]int) {
	t.Helper()
	require.Equal(t, submit.Verdict{Landed: v.Landed}, v)
	require.EqualValues(t, a.Answered+v.Landed, len(present))
	require.LessOrEqual(t, int64(len(present)), a.Answered+a.Maybe)
	require.Zero(t, a.NotSent, "an outage shorter than MaxOutage fails no job that was not sent")
	for job, n := range present {
		require.Equal(t, 1, n, job)
	}
}

// takeTorn takes out the jobs that a beanstalkd made of what it had half written when it was killed, at most one for
// each kill, and returns how many there were. It never answered for them.
func takeTorn(t *testing.T, present map[string]int) (n int64) {
	t.Helper()
	for body, copies := range present {
		if strings.Trim(body, "\x00") == "" {
			n += int64(copies)
			delete(present, body)
		}
	}
	require.LessOrEqual(t, n, int64(*killCount))
	return n
}

// Covers: E-4, E-5
func TestKill9LosesAndDoublesNoJobThatIsNeverRetried(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		s := startDurable(t)
		a, v := killed(t, s, streamURL(s, "in"), withoutIDs(), killRate, target.Options{})
		never(t, a, v, streamJobs(t, s, "in"))
	})
	t.Run("list", func(t *testing.T) {
		s := startDurable(t)
		a, v := killed(t, s, listURL(s, "in"), withoutIDs(), killRate, target.Options{})
		never(t, a, v, listJobs(t, s, "in"))
	})
	t.Run("tube", func(t *testing.T) {
		s := testserver.StartBeanstalkd(t, "-b", ".")
		a, v := killed(t, s, tubeURL(s, "in"), withoutIDs(), killRate, target.Options{})
		present := tubeJobs(t, s, "in")
		v.Strange -= takeTorn(t, present)
		never(t, a, v, present)
	})
}

// Covers: E-4, E-6
func TestKill9LosesNoRetriedJobAndRunsNoneMoreOftenThanItWasSent(t *testing.T) {
	check := func(t *testing.T, a submit.Account, v submit.Verdict, present map[string]int) {
		require.Zero(t, v.Lost)
		require.Zero(t, v.Excess)
		require.Zero(t, v.Unsent)
		require.Zero(t, v.Strange)
		require.EqualValues(t, *killJobs, a.Answered, "every job is taken in the end")
		require.Len(t, present, *killJobs)
		copies := 0
		for _, n := range present {
			copies += n
		}
		require.EqualValues(t, a.Answered+v.Duplicated, copies)
	}
	t.Run("stream", func(t *testing.T) {
		s := startDurable(t)
		a, v := killed(t, s, streamURL(s, "in"), withoutIDs(), killRate, target.Options{Retries: 10})
		check(t, a, v, streamJobs(t, s, "in"))
	})
	t.Run("tube", func(t *testing.T) {
		s := testserver.StartBeanstalkd(t, "-b", ".")
		a, v := killed(t, s, tubeURL(s, "in"), withoutIDs(), killRate, target.Options{Retries: 10})
		present := tubeJobs(t, s, "in")
		v.Strange -= takeTorn(t, present)
		check(t, a, v, present)
	})
}

// Covers: E-4, E-6
func TestKill9LeavesExactlyOneEntryOfEachJobWithAnID(t *testing.T) {
	for _, kind := range []string{"stream", "list"} {
		t.Run(kind, func(t *testing.T) {
			s := startDurable(t)
			// At full speed, so that many are under way at each kill.
			a, v := killed(t, s, redisURL(s, kind, "in"), withIDs(), 0, target.Options{})
			require.EqualValues(t, *killJobs, a.Answered, "every job is taken in the end")
			require.EqualValues(t, *killJobs, a.Once)
			require.Equal(t, submit.Verdict{}, v)
			require.Equal(t, *killJobs, s.Int("SCARD", "in:ids"))
			present := listOrStreamJobs(t, s, kind, "in")
			require.Len(t, present, *killJobs)
			for job, n := range present {
				require.Equal(t, 1, n, job)
			}
		})
	}
}

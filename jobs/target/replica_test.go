package target_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// refuser is a server of streams that refuses to add jobs with some line while refusing is set.
type refuser struct {
	line     string
	refusing atomic.Bool
	mu       struct {
		sync.Mutex
		added map[string]int
	}
}

func (r *refuser) script(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
	id := ""
	switch req.Verb() {
	case "XREVRANGE":
		return scripted.Reply("*0\r\n")
	case "EVAL", "EVALSHA":
		id = req.Args[5]
	case "XADD":
		id = req.Args[4]
	}
	if r.refusing.Load() {
		return scripted.Refuse(r.line)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.added[id]++
	return scripted.Reply("$3\r\n1-0\r\n")
}

// listen starts the server, refusing.
func (r *refuser) listen(t *testing.T) (addr string) {
	t.Helper()
	r.mu.added = map[string]int{}
	r.refusing.Store(true)
	s, addr, err := scripted.ListenTCP(scripted.Options{Script: r.script})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return addr
}

const inScript = " script: 8e0c2d, on @user_script:1."

var refusals = []string{
	"READONLY You can't write against a read only replica.", "LOADING Redis is loading the dataset in memory",
	"CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys request during rehashing of slot", "BUSY Redis is busy running a script.",
	"NOREPLICAS Not enough good replicas to write.",
}

func idJobs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"job-%d\",\"payload\":%d}\n", i, i)
	}
	return b.String()
}

// A second in which the server was a replica ended thousands of jobs with ids as maybe: inside a script the refusal was
// taken for a run, and each spent a part of the budget.
func TestJobsWithIDsAndWithoutAreHeldWhileTheServerRefusesToServe(t *testing.T) {
	for _, line := range refusals {
		for _, ids := range []bool{true, false} {
			r := &refuser{line: line}
			jobs := numbered(200)
			if ids {
				r.line, jobs = line+inScript, idJobs(200)
			}
			t.Run(r.line, func(t *testing.T) {
				t.Parallel()
				to := open(t, "redis://"+r.listen(t), target.Options{})
				over := time.AfterFunc(2*time.Second, func() { r.refusing.Store(false) })
				defer over.Stop()
				a := submitted(t, to, jobs)
				require.Equal(t, []int64{200, 0, 0, 0}, []int64{a.Answered, a.Failed, a.NotSent, a.Maybe})
				require.Len(t, r.mu.added, 200)
				for id, n := range r.mu.added {
					require.Equal(t, 1, n, id)
				}
				require.Greater(t, to.Engine().Refusals, uint64(400))
			})
		}
	}
}

func TestAServerThatRefusesForLongerThanAnOutageMayLastEndsTheRunWithItsReason(t *testing.T) {
	for name, jobs := range map[string]string{"with ids": idJobs(300), "without": numbered(300)} {
		t.Run(name, func(t *testing.T) {
			r := &refuser{line: refusals[0] + inScript}
			if name == "without" {
				r.line = refusals[0]
			}
			to := open(t, "redis://"+r.listen(t), target.Options{MaxOutage: 300 * time.Millisecond})
			run, err := submit.New(submit.Options{Window: 100, Hopeless: func(err error) bool { return fdengine.ErrUnavailable == unavailable(err) }})
			require.NoError(t, err)
			start := time.Now()
			a, err := run.Run(context.Background(), strings.NewReader(jobs), to)
			require.ErrorIs(t, err, submit.ErrHopeless)
			require.ErrorContains(t, err, "READONLY You can't write")
			require.Greater(t, time.Since(start), 300*time.Millisecond)
			require.Zero(t, a.Answered+a.Maybe, "each send was refused, so nothing ran")
			require.Equal(t, a.Accepted, a.NotSent)
			require.Empty(t, r.mu.added)
		})
	}
}

// unavailable is the class of err.
func unavailable(err error) error {
	if ce, ok := err.(*fdengine.CallError); ok {
		return ce.Class
	}
	return nil
}

// Covers: E-6
func TestEachJobWithAnIDIsThereOnceAlthoughTheServerWasAReplicaForThreeSeconds(t *testing.T) {
	const n = 20_000
	for _, kind := range []string{"stream", "list"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := testserver.StartRedis(t, testserver.RedisOptions{})
			to := open(t, redisURL(s, kind, "in"), target.Options{})
			r, err := submit.New(submit.Options{Rate: 10_000})
			require.NoError(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if !assertSoon(func() bool { return r.Account().Answered > 1000 }) {
					return
				}
				_, _ = s.Do("REPLICAOF", "127.0.0.1", "1") // what it did, or did not, shows in the counts below
				over := time.NewTimer(3 * time.Second)
				<-over.C
				_, _ = s.Do("REPLICAOF", "NO", "ONE")
			}()
			a, err := r.Run(context.Background(), strings.NewReader(idJobs(n)), to)
			<-done
			require.NoError(t, err)
			require.Equal(t, []int64{n, n, 0, 0, 0}, []int64{a.Answered, a.Once, a.Failed, a.NotSent, a.Maybe})
			require.Greater(t, a.Elapsed, 3*time.Second)
			require.Greater(t, to.Engine().Refusals, uint64(100))
			require.Equal(t, n, s.Int("SCARD", "in:ids"))
			jobs := listOrStreamJobs(t, s, kind, "in")
			require.Len(t, jobs, n)
			for job, copies := range jobs {
				require.Equal(t, 1, copies, job)
			}
			t.Logf("%v refusals=%d sessions=%d", a, to.Engine().Refusals, to.Engine().Sessions)
		})
	}
}

// assertSoon waits until f holds.
func assertSoon(f func() bool) bool {
	tick, limit := time.NewTicker(time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer limit.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-limit.C:
			return false
		}
	}
	return true
}

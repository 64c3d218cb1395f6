package redis

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// fromInside are refusals as a script that met them passes them on.
var fromInside = []string{
	"READONLY You can't write against a read only replica. script: a9c3, on @user_script:1.",
	"ERR Error running script (call to f_x): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
	"ERR Error running script (call to f_x): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write.",
	"NOREPLICAS Not enough good replicas to write. script: a9c3, on @user_script:1.",
	"CLUSTERDOWN The cluster is down script: a9c3, on @user_script:1.",
	"TRYAGAIN Multiple keys request during rehashing of slot script: a9c3, on @user_script:1.",
	"LOADING Redis is loading the dataset in memory",
	"BUSY Redis is busy running a script.",
}

// Jobs that are added by a script ended in doubt when a server was a replica for a second: each refusal was charged to the
// budget of a script that had not written yet.
//
// Covers: E-25
func TestAScriptThatIsRefusedWholeOutlivesAnyNumberOfRefusals(t *testing.T) {
	for _, line := range fromInside {
		t.Run(line, func(t *testing.T) {
			var over atomic.Bool
			so := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
				if req.Verb() == "EVALSHA" && !over.Load() {
					return scripted.Refuse(line)
				}
				return scripted.Action{}
			}}
			bubble(t, so, Options{Engine: fdengine.Options{MaxRefusals: 100}}, func(t *testing.T, r *rig) {
				timer := time.AfterFunc(3*time.Second, func() { over.Store(true) })
				defer timer.Stop()
				outs := map[string]*outcome{}
				for i, class := range []carry.Class{carry.NoRetry, carry.Replay} {
					for n := range 50 {
						name := fmt.Sprint(i, "-", n)
						outs[name] = newOutcome()
						cmd := Build("EVALSHA").Arg(name).ArgInt(0).WithClass(class).WithBudget(1)
						require.NoError(t, r.Submit(context.Background(), RefusedWhole{cmd}, outs[name]))
					}
				}
				for name, o := range outs {
					<-o.done
					require.NoError(t, o.err)
					require.Equal(t, 1, r.server.Executions(name))
				}
			})
		})
	}
}

func TestOnlyAVouchedScriptIsSentAgainForFree(t *testing.T) {
	for _, line := range fromInside {
		so := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
			if req.Attempt <= 4 {
				return scripted.Refuse(line)
			}
			return scripted.Action{}
		}}
		bubble(t, so, Options{}, func(t *testing.T, r *rig) {
			ctx := context.Background()
			plain, vouched := NewScript("plain"), NewScript("vouched").RefusedWhole()
			_, err := r.EvalScript(ctx, plain, []string{"k"})
			require.Equal(t, carry.Answered, fdengine.FateOf(err))
			require.NotEmpty(t, codeOf(err), line)
			require.Zero(t, r.server.Executions(plain.Digest()), line)
			_, err = r.EvalScript(ctx, vouched, []string{"k"})
			require.NoError(t, err, line)
			require.Equal(t, 1, r.server.Executions(vouched.Digest()))
			err = r.Do(ctx, NewScript("replayed").AllowReplay().EvalSha([]string{"k"}).WithBudget(2))
			require.ErrorIs(t, err, fdengine.ErrMaybeExecuted, "each refusal of a script that nobody vouched for is charged: %s", line)
		})
	}
}

func TestWhatIsNoRefusalIsTheAnswerOfAVouchedScriptToo(t *testing.T) {
	for _, frame := range []string{
		"$2\r\nok\r\n", ":0\r\n", "_\r\n", "-WRONGTYPE Operation against a key script: a9c3, on @user_script:1.\r\n",
		"-ERR my own words\r\n", "-OOM command not allowed script: a9c3, on @user_script:1.\r\n", "*1\r\n-READONLY inside\r\n",
		"-ERR Error running script (call to f_x): @user_script:1: -WRONGTYPE Operation against a key\r\n",
	} {
		require.Equal(t, fdengine.Verdict{}, RefusedWhole{}.Verdict([]byte(frame), false), frame)
	}
}

// Covers: E-5
func TestAVouchedScriptRunsOnceOnAServerThatIsAReplicaForAWhile(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	add := NewScript("return redis.call('INCR', KEYS[1])").RefusedWhole()
	do(t, c, add.Load())
	s.Text("REPLICAOF", "127.0.0.1", "1")
	done := make(chan error, 1)
	go func() {
		_, err := c.EvalScript(context.Background(), add, []string{"n"})
		done <- err
	}()
	require.Eventually(t, func() bool { return c.Stats().Engine.Refusals >= 5 }, 20*time.Second, time.Millisecond)
	s.Text("REPLICAOF", "NO", "ONE")
	require.NoError(t, <-done)
	require.Equal(t, "1", s.Text("GET", "n"))
}

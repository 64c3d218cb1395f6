package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// The backlog once went out before AUTH and SELECT were done, to database 0 or unauthenticated (C09).
// Covers: S0-52
func TestNothingGoesOutBeforeTheSessionIsSetUpAgain(t *testing.T) {
	const setUp = "HELLO SELECT CLIENT CLIENT PING"
	bubble(t, scripted.Options{}, Options{Password: "p", DB: 3}, func(t *testing.T, r *rig) {
		var cmds []*Cmd
		for i := range 50 {
			cmds = append(cmds, Echo(fmt.Sprintf("t%d", i)))
		}
		outs := r.hold(t, cmds)
		r.server.CloseConns()
		r.server.FreezeExec(false)
		for _, o := range outs {
			<-o.done
			require.NoError(t, o.err)
		}
		require.Equal(t, setUp+strings.Repeat(" ECHO", 50), verbs(r.server, 1))
		require.Equal(t, []string{"HELLO", "3", "AUTH", "default", "p"}, r.server.ConnLog(1)[0])
		require.Equal(t, []string{"SELECT", "3"}, r.server.ConnLog(1)[1])
	})
}

func TestARefusedSelectOnReconnectRunsNoCommandInTheWrongDatabase(t *testing.T) {
	so := scripted.Options{OnHandshake: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		if c.Index() > 0 && req.Verb() == "SELECT" {
			return scripted.Refuse("ERR DB index is out of range")
		}
		return scripted.Action{}
	}}
	bubble(t, so, Options{DB: 3}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(context.Background(), Echo("first")))
		r.server.CloseConns()
		err := r.Do(context.Background(), Incr("n"))
		require.ErrorIs(t, err, fdengine.ErrUnavailable)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		require.ErrorContains(t, err, "DB index")
		require.Zero(t, r.server.Executions("n"))
		require.Less(t, r.server.Conns(), 6, "no tight loop of dials")
	})
}

func TestASetUpThatIsNeverAnsweredEndsWithTheDialTimeout(t *testing.T) {
	so := scripted.Options{OnHandshake: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		if c.Index() == 0 {
			return scripted.Stall()
		}
		return scripted.Action{}
	}}
	bubble(t, so, Options{Password: "p", DialTimeout: 300 * time.Millisecond}, func(t *testing.T, r *rig) {
		start := time.Now()
		require.NoError(t, r.Do(context.Background(), Incr("n")))
		require.Less(t, time.Since(start), 500*time.Millisecond)
		require.GreaterOrEqual(t, time.Since(start), 300*time.Millisecond)
	})
}

func TestAWrongPasswordFailsWhatWaitsAtOnceAndIsNotShown(t *testing.T) {
	so := scripted.Options{OnHandshake: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		return scripted.Refuse("WRONGPASS invalid username-password pair or user is disabled.")
	}}
	bubble(t, so, Options{Password: "hunter2"}, func(t *testing.T, r *rig) {
		start := time.Now()
		err := r.Do(context.Background(), Incr("n"))
		require.ErrorIs(t, err, fdengine.ErrUnavailable)
		require.Equal(t, "WRONGPASS", codeOf(err))
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		require.NotContains(t, err.Error(), "hunter2")
		require.Less(t, time.Since(start), time.Second)
	})
}

// Commands that change reply count or connection state shifted every later reply of a shared connection (C10).
// Covers: E-31
func TestCommandsThatMustNotShareAreRefusedWhileOthersGoOn(t *testing.T) {
	bubble(t, scripted.Options{}, Options{}, func(t *testing.T, r *rig) {
		stop := make(chan struct{})
		wait := echoes(t, r.Client, 16, stop)
		refused := []string{
			"subscribe c", "PSUBSCRIBE c", "ssubscribe c", "MONITOR", "Client Reply OFF", "CLIENT REPLY SKIP", "SELECT 1", "auth p", "HELLO 3",
			"RESET", "quit", "SHUTDOWN", "MULTI", "WATCH k", "BLPOP l 0", "xread block 0 streams s $", "WAIT 0 0",
		}
		for _, line := range refused {
			start := time.Now()
			err := r.Do(context.Background(), split(line))
			require.ErrorIs(t, err, ErrNotShared, line)
			require.ErrorIs(t, r.TrySubmit(split(line), newOutcome()), ErrNotShared, line)
			require.ErrorIs(t, r.Submit(context.Background(), split(line), newOutcome()), ErrNotShared, line)
			require.Equal(t, carry.NotSent, fdengine.FateOf(err), line)
			require.Less(t, time.Since(start), time.Second)
		}
		require.NoError(t, r.Do(context.Background(), split("XREAD COUNT 1 STREAMS s 0")))
		close(stop)
		require.Positive(t, wait())
		require.Equal(t, 1, r.server.Conns())
		for _, req := range r.server.Requests(0) {
			require.Contains(t, []string{"HELLO", "CLIENT", "PING", "ECHO", "XREAD"}, req.Verb(), "nothing of a refused command was written")
		}
	})
}

// Covers: E-45
func TestTheNextSessionKillsTheOneThatTimedOutBeforeAnythingIsReplayed(t *testing.T) {
	so := scripted.Options{Script: onceAt("slow", scripted.Stall())}
	bubble(t, so, Options{Engine: fdengine.Options{ReadTimeout: time.Second}}, func(t *testing.T, r *rig) {
		slow := Echo("slow")
		require.NoError(t, r.Do(context.Background(), slow))
		require.Equal(t, 2, r.server.Conns())
		log := r.server.ConnLog(1)
		require.Equal(t, []string{"CLIENT", "KILL", "ID", "1"}, log[3])
		require.Equal(t, []string{"PING"}, log[4])
		require.Equal(t, []string{"ECHO", "slow"}, log[5])
	})
}

func TestPingAsksTheServerAndStatsCountIt(t *testing.T) {
	bubble(t, scripted.Options{}, Options{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(context.Background()))
		<-r.Ready()
		require.NotNil(t, r.Engine())
		require.Equal(t, 1, r.Stats().Pool.Leased)
		s := r.Stream()
		require.NoError(t, s.Do(context.Background(), Echo("x")))
		require.NoError(t, s.Close())
	})
}

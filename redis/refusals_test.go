package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

var errDecoder = errors.New("decoder failed")

// failing is a command whose decoder returns an error.
type failing struct{ *Cmd }

func (failing) DecodeReply(fdengine.Reply) error { return errDecoder }

// A refusal that proves non-execution was once surfaced for writes, or the whole batch was run again (C36).
// Covers: S2-16
func TestANoRetryCommandIsSentAgainOnlyAfterARefusalThatProvesItDidNotRun(t *testing.T) {
	for _, tc := range []struct {
		refusal string
		conns   int  // used in the end
		again   bool // sent again
	}{
		{"LOADING Redis is loading the dataset in memory", 1, true},
		{"BUSY Redis is busy running a script.", 1, true},
		{"TRYAGAIN Multiple keys request during rehashing of slot", 1, true},
		{"CLUSTERDOWN Hash slot not served", 1, true},
		{"MASTERDOWN Link with MASTER is down", 1, true},
		{"NOREPLICAS Not enough good replicas to write.", 1, true},
		{"READONLY You can't write against a read only replica.", 2, true},
		{"ERR READONLY You can't write against a read only replica.", 2, true},
		{"MOVED 3999 127.0.0.1:6381", 1, false},
		{"ASK 3999 127.0.0.1:6381", 1, false},
		{"NOSCRIPT No matching script.", 1, false},
		{"OOM command not allowed", 1, false},
		{"WRONGTYPE Operation against a key", 1, false},
		{"ERR something", 1, false},
		{"READONLY You can't write. script: a9c3, on @user_script:1.", 1, false},
	} {
		t.Run(tc.refusal, func(t *testing.T) {
			bubble(t, scripted.Options{Script: onceAt("n", scripted.Refuse(tc.refusal))}, Options{}, func(t *testing.T, r *rig) {
				c := Incr("n")
				err := r.Do(context.Background(), c)
				if tc.again {
					require.NoError(t, err)
					require.Equal(t, 1, r.server.Executions("n"))
				} else {
					require.Equal(t, strings.Fields(tc.refusal)[0], codeOf(err))
					require.Equal(t, carry.Answered, fdengine.FateOf(err))
					require.Zero(t, r.server.Executions("n"))
					require.Equal(t, err, c.Err())
				}
				require.NoError(t, r.Do(context.Background(), Echo("after")))
				if tc.again {
					require.Equal(t, tc.conns, r.server.Conns())
				}
			})
		})
	}
	for name, a := range map[string]scripted.Action{"drop": scripted.DropAfter(), "silence": scripted.Stall()} {
		bubble(t, scripted.Options{Script: onceAt("n", a)}, Options{}, func(t *testing.T, r *rig) {
			requireMaybe(t, r.Do(context.Background(), Incr("n")))
			require.NoError(t, r.Do(context.Background(), Echo("after")), name)
			require.Equal(t, 1, r.server.Executions("n"), "a second send would be a second increment")
		})
	}
}

func TestOnlyTheRefusedCommandsOfABatchAreSentAgain(t *testing.T) {
	so := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Attempt == 1 && (req.Token() == "t4" || req.Token() == "t7") {
			return scripted.Refuse("TRYAGAIN later")
		}
		return scripted.Action{}
	}}
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		cmds, errs := make([]fdengine.Command, 10), make([]error, 10)
		for i := range cmds {
			cmds[i] = Incr(fmt.Sprintf("t%d", i+1)).WithBudget(-1)
		}
		require.NoError(t, r.DoBatch(context.Background(), cmds, errs))
		for i := range cmds {
			require.NoError(t, errs[i])
			token := fmt.Sprintf("t%d", i+1)
			require.Equal(t, 1, r.server.Executions(token))
			got, err := cmds[i].(*Cmd).Text()
			require.NoError(t, err)
			require.Equal(t, token, got)
		}
		require.Equal(t, 12, len(r.server.ConnTokens(0)))
	})
}

// A demoted primary keeps its connections open, so a client that reacts to I/O errors only is stuck on it (C37).
// Covers: E-23
func TestAReadOnlyServerLosesItsConnectionOnceAndTheWritesRunOnceWhereTheNameLeads(t *testing.T) {
	b := scripted.New(scripted.Options{})
	defer func() { require.NoError(t, b.Close()) }()
	so := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Verb() == "SET" {
			return scripted.Refuse("READONLY You can't write against a read only replica.")
		}
		return scripted.Action{}
	}}
	a, addrA, err := scripted.ListenTCP(so)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	lb, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.Serve(lb)
	var dials atomic.Int32
	c, err := New(Options{Addr: "db.test:6379", DialFunc: func(ctx context.Context, network, addr string) (net.Conn, error) {
		target := addrA // what the name resolves to at first
		if dials.Add(1) > 1 {
			target = lb.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, target)
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()); <-c.Done() }()
	var cmds []*Cmd
	for i := range 1000 {
		cmds = append(cmds, Set(fmt.Sprintf("t%d", i), "v").WithClass(carry.NoRetry))
	}
	for _, err := range submitAll(t, c, cmds) {
		require.NoError(t, err)
	}
	for i := range cmds {
		require.Equal(t, 1, b.Executions(fmt.Sprintf("t%d", i)))
	}
	require.Zero(t, a.Executed())
	require.EqualValues(t, 2, dials.Load())
}

func TestWhenEveryServerIsReadOnlyTheErrorSaysSo(t *testing.T) {
	so := scripted.Options{Script: func(*scripted.ServerConn, scripted.Request) scripted.Action { return scripted.Refuse("READONLY no") }}
	bubble(t, so, Options{Engine: fdengine.Options{MaxRefusals: 5}}, func(t *testing.T, r *rig) {
		start := time.Now()
		err := r.Do(context.Background(), Incr("n"))
		require.Equal(t, "READONLY", codeOf(err))
		require.Greater(t, time.Since(start), time.Duration(0), "with backoff")
		require.Less(t, r.server.Conns(), 8)
		require.Zero(t, r.server.Executed())
	})
}

// A restarted node opens its port while it loads; clients passed the refusals on for minutes (C38).
// Covers: E-25
func TestALoadingServerIsWaitedForWithBackoffAndEachCommandRunsOnce(t *testing.T) {
	bubble(t, scripted.Options{}, Options{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(context.Background(), Echo("before")))
		r.server.RefuseAll("LOADING Redis is loading the dataset in memory")
		r.server.CloseConns()
		over := time.AfterFunc(2*time.Second, func() { r.server.RefuseAll("") })
		defer over.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		short := newOutcome()
		require.NoError(t, r.Submit(context.Background(), Incr("short").WithTimeout(500*time.Millisecond), short))
		cmds, errs := make([]fdengine.Command, 100), make([]error, 100)
		for i := range cmds {
			cmds[i] = Incr(fmt.Sprintf("t%d", i))
		}
		start := time.Now()
		require.NoError(t, r.DoBatch(ctx, cmds, errs))
		require.NoError(t, errors.Join(errs...))
		require.GreaterOrEqual(t, time.Since(start), 2*time.Second)
		require.Less(t, time.Since(start), 4*time.Second)
		<-short.done
		require.Equal(t, carry.NotSent, fdengine.FateOf(short.err))
		require.ErrorIs(t, short.err, fdengine.ErrTimeout)
		var want []string
		for i := range cmds {
			want = append(want, fmt.Sprintf("t%d", i))
			require.Equal(t, 1, r.server.Executions(want[i]))
		}
		require.Equal(t, want, r.server.Order()[1:], "in order")
		require.LessOrEqual(t, r.server.Conns(), 21)
		for i := 1; i < r.server.Conns()-1; i++ {
			require.NotContains(t, verbs(r.server, i), "INCR", "nothing is sent before a handshake has passed")
		}
	})
}

// Covers: E-25
func TestRefusedCommandsDoNotDelayAHealthyOneBehindThem(t *testing.T) {
	loading := atomic.Bool{}
	loading.Store(true)
	so := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Verb() == "GET" && loading.Load() {
			return scripted.Refuse("LOADING soon")
		}
		return scripted.Action{}
	}}
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		outs := make([]*outcome, 500)
		for i := range outs {
			outs[i] = newOutcome()
			require.NoError(t, r.Submit(context.Background(), Get(fmt.Sprintf("t%d", i)), outs[i]))
		}
		start := time.Now()
		require.NoError(t, r.Do(context.Background(), Echo("healthy")))
		require.Less(t, time.Since(start), 10*time.Millisecond)
		loading.Store(false)
		for _, o := range outs {
			<-o.done
			require.NoError(t, o.err)
		}
		require.Equal(t, 1, r.server.Conns())
	})
}

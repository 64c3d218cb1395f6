package fdengine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// Covers: E-25, E-6
func TestALoadingStormDoesNotStallAHealthyCommand(t *testing.T) {
	s := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Token()[0] == 'l' && req.Attempt < 6 {
			return scripted.Refuse("LOADING retry=500")
		}
		return scripted.Action{}
	}}
	bubble(t, setup{Server: s, Engine: fdengine.Options{Budget: -1}}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		ls := echoes("l", 500, carry.NoRetry)
		h := scripted.Echo("h")
		r.together(func() {
			submitAll(t, r, o, ls...)
			submitAll(t, r, o, h)
		})
		synctest.Wait()
		ok(t, o, h)
		d := took(func() { require.NoError(t, r.Do(bg, scripted.Echo("i"))) })
		require.Less(t, d, 10*time.Millisecond)
		require.Equal(t, 500, r.Stats().QueueCommands, "those that wait are counted")
		pass(4 * time.Second)
		ok(t, o, ls...)
		for _, l := range ls {
			require.Equal(t, 1, r.server.Executions(l.Token))
			require.Equal(t, 6, l.Sends)
			require.False(t, l.Maybe)
		}
		require.Equal(t, tokens(ls), firstTimes(r.server.Order(), "l"), "in the order they came")
	})
}

// Covers: E-6
func TestRefusalsAreBounded(t *testing.T) {
	for _, max := range []int{-1, 1, 5, 0} {
		s := script{"l": always(scripted.Refuse("LOADING retry=1"))}
		bubble(t, setup{Server: s.options(), Engine: fdengine.Options{MaxRefusals: max}}, func(t *testing.T, r *rig) {
			c := scripted.Echo("l")
			err := r.Do(bg, c)
			var refusal *scripted.ServerError
			require.ErrorAs(t, err, &refusal)
			failsAs(t, err, carry.Answered)
			want := map[int]int{-1: 1, 1: 2, 5: 6, 0: 33}[max]
			require.Equal(t, want, c.Sends)
			require.Zero(t, r.server.Executed())
			pass(time.Second)
			require.Equal(t, uint64(want-1), r.Stats().Refusals)
		})
	}
}

// Covers: E-6
func TestThePauseBetweenRefusalsGrowsAndTheServersWordComesFirst(t *testing.T) {
	var at []time.Time
	s := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		at = append(at, req.At)
		switch {
		case req.Token() == "word" && req.Attempt == 1:
			return scripted.Refuse("LOADING retry=700")
		case req.Token() == "own" && req.Attempt <= 32:
			return scripted.Refuse("LOADING")
		}
		return scripted.Action{}
	}}
	o := fdengine.Options{BackoffMin: 20 * time.Millisecond, BackoffMax: 400 * time.Millisecond}
	bubble(t, setup{Server: s, Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("word")))
		require.InDelta(t, 705, at[1].Sub(at[0]).Milliseconds(), 10)
		at = nil
		require.NoError(t, r.Do(bg, scripted.Echo("own")))
		for i := range len(at) - 1 {
			gap := at[i+1].Sub(at[i])
			require.GreaterOrEqual(t, gap, 10*time.Millisecond, "never a circle without pause")
			require.LessOrEqual(t, gap, 425*time.Millisecond)
		}
		require.Greater(t, at[32].Sub(at[0]), 32*100*time.Millisecond)
	})
}

// Covers: E-6, C01
func TestACallerWhoLeavesDuringTheBackoffIsNotSent(t *testing.T) {
	s := script{"l": always(scripted.Refuse("LOADING retry=1000")), "g": first(1, scripted.Action{Delay: 50 * time.Millisecond, Refuse: "LOADING"})}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		for token, wait := range map[string]time.Duration{"l": 100 * time.Millisecond, "g": 20 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(bg, wait)
			fate := carry.NotSent
			if token == "g" {
				fate = carry.MaybeExecuted // its refusal comes later, to a ghost
			}
			failsAs(t, r.Do(ctx, scripted.Echo(token)), fate, context.DeadlineExceeded)
			cancel()
			pass(3 * time.Second)
			require.Zero(t, r.server.Executions(token))
			n := 0
			for _, tok := range r.server.ConnTokens(0) {
				if tok == token {
					n++
				}
			}
			require.Equal(t, 1, n, "no second send")
		}
		require.Equal(t, 1, r.server.Conns())
	})
}

// Covers: E-23
func TestAREADONLYRetiresTheConnectionOnceAndInnocentsGetTheirReplies(t *testing.T) {
	s := scripted.Options{Script: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		if c.Index() == 0 && req.Token()[0] == 'w' {
			return scripted.Refuse("READONLY You can't write against a read only replica.")
		}
		return scripted.Action{}
	}}
	bubble(t, setup{Server: s}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		ws, rs := echoes("w", 100, carry.NoRetry), echoes("r", 100, carry.NoRetry)
		r.together(func() {
			for i := range ws {
				submitAll(t, r, o, ws[i], rs[i])
			}
		})
		pass(2 * time.Second)
		ok(t, o, ws...)
		ok(t, o, rs...)
		for _, c := range append(ws, rs...) {
			require.Equal(t, 1, r.server.Executions(c.Token))
		}
		require.Subset(t, r.server.ConnTokens(0), tokens(rs))
		require.Equal(t, 2, r.server.Conns())
		require.Equal(t, uint64(1), r.Stats().Retired)
		require.Zero(t, r.Stats().Cuts)
		require.Len(t, r.leaser.Reasons(), 1)
		require.Equal(t, 1, r.leaser.Counts().Removes)
		require.Zero(t, r.leaser.Counts().Puts)
	})
}

// Covers: E-6, E-41
func TestARefusalDoesNotTakeBackAnEarlierSend(t *testing.T) {
	s := script{"a": func(n int) scripted.Action {
		if n == 1 {
			return scripted.DropAfter()
		}
		return scripted.Refuse("ERR no")
	}, "b": func(n int) scripted.Action {
		if n == 1 {
			return scripted.DropAfter()
		}
		return scripted.Refuse("LOADING retry=60000")
	}}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		err := r.Do(bg, scripted.ReplayEcho("a"))
		failsAs(t, err, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
		var refusal *scripted.ServerError
		require.ErrorAs(t, err, &refusal, "with the server's word as the cause")
		b := scripted.ReplayEcho("b")
		b.Traits.Timeout = time.Second
		failsAs(t, r.Do(bg, b), carry.MaybeExecuted, fdengine.ErrTimeout)
	})
}

// Covers: E-6
func TestARefusalThatMayHaveRunIsChargedAndForReplayOnly(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		judge := func([]byte, bool) fdengine.Verdict {
			return fdengine.Verdict{Then: fdengine.RetryHere, After: time.Millisecond}
		}
		n := &scripted.JudgingCmd{Cmd: *scripted.Echo("n"), Judge: judge}
		require.NoError(t, r.Do(bg, n), "NoRetry: the reply is the answer")
		require.Equal(t, 1, r.server.Executions("n"))
		p := &scripted.JudgingCmd{Cmd: *scripted.ReplayEcho("p"), Judge: judge}
		p.Traits.Budget = 2
		require.NoError(t, r.Do(bg, p))
		require.Equal(t, 3, r.server.Executions("p"))
		require.Equal(t, 3, p.Sends)
		require.True(t, p.Maybe)
	})
}

func TestAVerdictOfACommandComesBeforeTheProtocols(t *testing.T) {
	bubble(t, setup{Server: script{"j": always(scripted.Refuse("READONLY no"))}.options()}, func(t *testing.T, r *rig) {
		asked := 0
		j := &scripted.JudgingCmd{Cmd: *scripted.Echo("j"), Judge: func(frames []byte, maybe bool) fdengine.Verdict {
			asked++
			require.Equal(t, "-READONLY no\r\n", string(frames))
			require.False(t, maybe)
			return fdengine.Verdict{}
		}}
		require.Error(t, r.Do(bg, j))
		require.Equal(t, 1, asked)
		require.NoError(t, r.Do(bg, scripted.Echo("x")))
		require.Equal(t, 1, r.server.Conns(), "not retired")
	})
}

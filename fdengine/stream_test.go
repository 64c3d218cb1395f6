package fdengine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// Covers: E-2, S4-3
func TestAStreamKeepsItsOrderOverCuts(t *testing.T) {
	s := script{}
	for _, tok := range []string{"s17", "n18", "s55", "s80"} {
		s[tok] = first(1, scripted.DropAfter())
	}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		cs := echoes("s", 100, carry.Replay)
		noise := echoes("n", 100, carry.Replay)
		for i := range cs {
			cs[i].Traits.Budget, noise[i].Traits.Budget = 9, 9
		}
		for i := range cs {
			submitAll(t, st, o, cs[i])
			submitAll(t, r, o, noise[i])
		}
		require.NoError(t, st.Flush(bg))
		pass(5 * time.Second)
		ok(t, o, cs...)
		ok(t, o, noise...)
		require.Equal(t, 5, r.server.Conns())
		require.Equal(t, tokens(cs), firstTimes(r.server.Order(), "s"))
		for i := range r.server.Conns() {
			require.IsNonDecreasing(t, numbers(r.server.ConnTokens(i), "s"), "connection %d", i)
		}
	})
}

// firstTimes is the tokens with that prefix in the order of their first executions.
func firstTimes(order []string, prefix string) (out []string) {
	seen := map[string]bool{}
	for _, tok := range order {
		if tok[:1] == prefix && !seen[tok] {
			seen[tok] = true
			out = append(out, tok)
		}
	}
	return out
}

// numbers is the numbers of the tokens with that prefix.
func numbers(tokens []string, prefix string) (out []int) {
	for _, tok := range tokens {
		if tok[:1] == prefix {
			n := 0
			for _, d := range tok[1:] {
				n = 10*n + int(d-'0')
			}
			out = append(out, n)
		}
	}
	return out
}

// Covers: S4-6, E-5
func TestAFailureBreaksItsStreamAndNobodyElse(t *testing.T) {
	bubble(t, setup{Server: script{"b": always(scripted.DropAfter())}.options()}, func(t *testing.T, r *rig) {
		st, other, o := r.Stream(), r.Stream(), &outcomes{}
		a, b := scripted.ReplayEcho("a"), scripted.Echo("b")
		c, d := scripted.ReplayEcho("c"), scripted.Echo("d")
		x, y := scripted.ReplayEcho("x"), scripted.ReplayEcho("y")
		r.together(func() {
			submitAll(t, st, o, a, b, c)
			submitAll(t, other, o, x)
			submitAll(t, r, o, y)
			submitAll(t, st, o, d)
		})
		pass(2 * time.Second)
		ok(t, o, a, x, y)
		failed(t, o, b, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
		failed(t, o, c, carry.MaybeExecuted, fdengine.ErrStreamBroken)
		failed(t, o, d, carry.MaybeExecuted)
		require.Zero(t, r.server.Executions("c")+r.server.Executions("d"), "nothing after the gap")
		require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
		require.NoError(t, other.Flush(bg))

		late := scripted.Echo("late")
		failsAs(t, st.Do(bg, late), carry.NotSent, fdengine.ErrStreamBroken, fdengine.ErrNotSent)
		failsAs(t, st.Submit(bg, late, o), carry.NotSent, fdengine.ErrStreamBroken)
		failsAs(t, st.TrySubmit(late, o), carry.NotSent, fdengine.ErrStreamBroken)
		require.NoError(t, st.Reset())
		require.NoError(t, st.Do(bg, late))
		require.NoError(t, st.Flush(bg))
	})
}

// A caller leaves a command that may have run and waits to be sent again: the stream has a gap that no later event
// reports, and those behind it waited for ever.
//
// Covers: E-41, S4-6
func TestACallerWhoLeavesACommandThatMayHaveRunBreaksItsStreamAtOnce(t *testing.T) {
	bubble(t, setup{Server: script{"a": always(scripted.DropAfter())}.options()}, func(t *testing.T, r *rig) {
		down := false
		r.leaser.OnLease = func(int) error {
			if down {
				return errors.New("down")
			}
			return nil
		}
		require.NoError(t, r.Ping(bg))
		synctest.Wait()
		down = true
		st, o := r.Stream(), &outcomes{}
		ctx, cancel := context.WithCancel(bg)
		var left error
		go func() { left = st.Do(ctx, scripted.ReplayEcho("a")) }()
		synctest.Wait()
		b := scripted.ReplayEcho("b")
		submitAll(t, st, o, b)
		pass(500 * time.Millisecond)
		require.Zero(t, o.count())
		cancel()
		pass(20 * time.Millisecond)
		failsAs(t, left, carry.MaybeExecuted, context.Canceled, fdengine.ErrMaybeExecuted)
		failed(t, o, b, carry.NotSent, fdengine.ErrStreamBroken)
		within(t, time.Second, func() { require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken) })
	})
}

// Covers: E-19, E-2
func TestACommandWithdrawnBeforeItWasSentIsNoFailureOfItsStream(t *testing.T) {
	bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		a, c := scripted.Echo("a"), scripted.Echo("c")
		submitAll(t, st, o, a)
		ctx, cancel := context.WithCancel(bg)
		var left error
		go func() { left = st.Do(ctx, scripted.Echo("b")) }()
		synctest.Wait()
		submitAll(t, st, o, c)
		cancel()
		synctest.Wait()
		failsAs(t, left, carry.NotSent, context.Canceled, fdengine.ErrNotSent)
		r.listen()
		require.NoError(t, st.Flush(bg))
		ok(t, o, a, c)
		require.Equal(t, []string{"a", "c"}, r.server.Order())
	})
}

// Covers: S4-6
func TestExpiryOutageAndDenialBreakTheStream(t *testing.T) {
	t.Run("expiry", func(t *testing.T) {
		bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
			st, o := r.Stream(), &outcomes{}
			a, b, c := scripted.Echo("a"), scripted.Echo("b"), scripted.Echo("c")
			b.Traits.Timeout = 100 * time.Millisecond
			submitAll(t, st, o, a, b, c)
			pass(115 * time.Millisecond)
			failed(t, o, b, carry.NotSent, fdengine.ErrTimeout, context.DeadlineExceeded)
			failed(t, o, c, carry.NotSent, fdengine.ErrStreamBroken)
			r.listen()
			require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
			ok(t, o, a)
			require.Equal(t, []string{"a"}, r.server.Order())
		})
	})
	t.Run("outage", func(t *testing.T) {
		bubble(t, setup{NoStart: true, Engine: fdengine.Options{MaxOutage: time.Second}}, func(t *testing.T, r *rig) {
			st, o := r.Stream(), &outcomes{}
			a, b := scripted.Echo("a"), scripted.Echo("b")
			submitAll(t, st, o, a)
			pass(900 * time.Millisecond)
			submitAll(t, st, o, b) // young, but behind the gap
			pass(200 * time.Millisecond)
			failed(t, o, a, carry.NotSent, fdengine.ErrUnavailable)
			failed(t, o, b, carry.NotSent, fdengine.ErrStreamBroken)
		})
	})
	t.Run("denial", func(t *testing.T) {
		lim := &limiter{}
		bubble(t, setup{Engine: fdengine.Options{Limiter: lim, Window: 1}}, func(t *testing.T, r *rig) {
			st, o := r.Stream(), &outcomes{}
			require.NoError(t, r.Ping(bg))
			synctest.Wait()
			lim.deny(errors.New("busy"))
			both := make(chan struct{})
			lim.onAllow = func() { <-both }
			a, b := scripted.Echo("a"), scripted.Echo("b")
			submitAll(t, st, o, a, b)
			close(both)
			synctest.Wait()
			failed(t, o, a, carry.NotSent, fdengine.ErrDenied)
			_, told := o.of(b)
			require.True(t, told)
			require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
			require.Zero(t, r.server.Executed())
		})
	})
}

// Covers: S0-8
func TestFlushWaitsForAllOfTheStreamOrItsContext(t *testing.T) {
	bubble(t, setup{Server: script{"b": always(scripted.Delay(time.Second))}.options()}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		require.NoError(t, st.Flush(bg), "nothing under way")
		submitAll(t, st, o, scripted.Echo("a"), scripted.Echo("b"))
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, st.Flush(ctx), context.DeadlineExceeded)
		require.Equal(t, 100*time.Millisecond, time.Since(start))
		require.NoError(t, st.Flush(bg))
		require.Equal(t, 2, o.count())
		require.NoError(t, st.Close())
		failsAs(t, st.Do(bg, scripted.Echo("x")), carry.NotSent, fdengine.ErrClosed)
		failsAs(t, st.Submit(bg, scripted.Echo("x"), o), carry.NotSent, fdengine.ErrClosed)
		require.NoError(t, st.Flush(bg))
	})
}

// Covers: E-14
func TestResetOfAStreamOnAClosedEngineSaysSo(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		st := r.Stream()
		require.NoError(t, r.Close())
		require.ErrorIs(t, st.Reset(), fdengine.ErrClosed)
		failsAs(t, st.Do(bg, scripted.Echo("x")), carry.NotSent, fdengine.ErrClosed)
		require.NoError(t, st.Flush(bg))
	})
}

// Covers: S4-6
func TestStrictOrderFailsEverythingPublishedBehindAFailure(t *testing.T) {
	for _, strict := range []bool{false, true} {
		s := script{"b": always(scripted.DropAfter())}
		bubble(t, setup{Server: s.options(), Engine: fdengine.Options{StrictOrder: strict}}, func(t *testing.T, r *rig) {
			o := &outcomes{}
			a, b, c := scripted.ReplayEcho("a"), scripted.Echo("b"), scripted.ReplayEcho("c")
			r.together(func() { submitAll(t, r, o, a, b, c) })
			pass(time.Second)
			ok(t, o, a)
			failed(t, o, b, carry.MaybeExecuted)
			if strict {
				failed(t, o, c, carry.MaybeExecuted, fdengine.ErrStreamBroken)
				require.Zero(t, r.server.Executions("c"))
			} else {
				ok(t, o, c)
			}
		})
	}
}

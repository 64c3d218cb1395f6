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

var loading = scripted.Refuse("LOADING retry=100")

// Covers: E-44, E-2, C07
func TestAStreamRefusedAsAWholeIsSentAgainInOrder(t *testing.T) {
	s := script{"a": first(1, loading), "b": first(1, loading), "c": first(1, loading)}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		a, b, c, d := scripted.Echo("a"), scripted.Echo("b"), scripted.Echo("c"), scripted.Echo("d")
		r.together(func() { submitAll(t, st, o, a, b, c) })
		synctest.Wait()
		require.Zero(t, o.count())
		submitAll(t, st, o, d) // comes while it is held: not before the others
		synctest.Wait()
		other := scripted.Echo("other")
		require.NoError(t, r.Do(bg, other), "the reader never waits")
		require.NoError(t, st.Flush(bg))
		ok(t, o, a, b, c, d)
		require.Equal(t, []string{"other", "a", "b", "c", "d"}, r.server.Order())
		require.Equal(t, 2, a.Sends)
		require.Equal(t, 1, d.Sends)
		require.Equal(t, 1, r.server.Conns())
		require.Equal(t, uint64(3), r.Stats().Refusals)
	})
}

// Covers: E-44, C07
func TestAStreamThatWentOnWithoutTheRefusedOneBreaks(t *testing.T) {
	s := script{"a": first(1, loading), "c": first(1, loading)}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		a, b, c := scripted.Echo("a"), scripted.Echo("b"), scripted.Echo("c")
		r.together(func() { submitAll(t, st, o, a, b, c) })
		pass(2 * time.Second)
		var refusal *scripted.ServerError
		require.ErrorAs(t, settledOf(t, o, a), &refusal, "it settles with what the server said")
		failed(t, o, a, carry.Answered)
		ok(t, o, b)
		_, told := o.of(c)
		require.True(t, told)
		require.Error(t, settledOf(t, o, c))
		require.Equal(t, []string{"b"}, r.server.Order(), "nothing is sent again")
		require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
		require.Equal(t, 1, a.Decodes)
	})
}

// Covers: E-44
func TestWhoeverIsHeldBackBehindABrokenHoldFails(t *testing.T) {
	s := script{"a": first(1, loading), "b": always(scripted.Delay(time.Second))}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		a, b, c := scripted.Echo("a"), scripted.Echo("b"), scripted.Echo("c")
		r.together(func() { submitAll(t, st, o, a, b) })
		pass(500 * time.Millisecond)
		submitAll(t, st, o, c)
		pass(400 * time.Millisecond)
		require.Zero(t, o.count(), "b may still be refused")
		pass(200 * time.Millisecond)
		failed(t, o, a, carry.Answered)
		ok(t, o, b)
		failed(t, o, c, carry.NotSent, fdengine.ErrStreamBroken)
		require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
	})
}

// Covers: E-44, E-19
func TestTheCallerOfAHeldCommandMayLeave(t *testing.T) {
	t.Run("the refused one", func(t *testing.T) {
		bubble(t, setup{Server: script{"a": first(1, loading), "b": first(1, loading)}.options()}, func(t *testing.T, r *rig) {
			st, o := r.Stream(), &outcomes{}
			ctx, cancel := context.WithCancel(bg)
			b, c := scripted.Echo("b"), scripted.Echo("c")
			var left error
			r.together(func() {
				go func() { left = st.Do(ctx, scripted.Echo("a")) }()
				synctest.Wait()
				submitAll(t, st, o, b)
			})
			synctest.Wait()
			submitAll(t, st, o, c)
			cancel()
			synctest.Wait()
			failsAs(t, left, carry.NotSent, context.Canceled)
			require.NoError(t, st.Flush(bg), "it never ran and never will: no gap")
			ok(t, o, b, c)
			require.Equal(t, []string{"b", "c"}, r.server.Order())
		})
	})
	t.Run("one behind it", func(t *testing.T) {
		bubble(t, setup{Server: script{"a": first(1, loading), "b": first(1, loading)}.options()}, func(t *testing.T, r *rig) {
			st, o := r.Stream(), &outcomes{}
			ctx, cancel := context.WithCancel(bg)
			a, c := scripted.Echo("a"), scripted.Echo("c")
			var left error
			r.together(func() {
				submitAll(t, st, o, a)
				synctest.Wait()
				go func() { left = st.Do(ctx, scripted.Echo("b")) }()
			})
			synctest.Wait()
			submitAll(t, st, o, c)
			cancel()
			synctest.Wait()
			failsAs(t, left, carry.NotSent, context.Canceled)
			require.NoError(t, st.Flush(bg))
			ok(t, o, a, c)
			require.Equal(t, []string{"a", "c"}, r.server.Order())
		})
	})
}

// Covers: E-44, S4-4
func TestACutWhileAStreamIsHeld(t *testing.T) {
	t.Run("nothing ran behind the refusal", func(t *testing.T) {
		s := script{"a": first(1, loading), "b": first(1, scripted.Action{Refuse: "LOADING retry=100", Close: true})}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			st, o := r.Stream(), &outcomes{}
			a, b, c := scripted.Echo("a"), scripted.Echo("b"), scripted.Echo("c")
			r.together(func() { submitAll(t, st, o, a, b) })
			synctest.Wait()
			submitAll(t, st, o, c)
			require.NoError(t, st.Flush(bg))
			ok(t, o, a, b, c)
			require.Equal(t, []string{"a", "b", "c"}, r.server.Order())
			require.Equal(t, 2, r.server.Conns())
		})
	})
	t.Run("one behind it may have run", func(t *testing.T) {
		s := script{"a": first(1, loading), "b": always(scripted.DropAfter())}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			st, o := r.Stream(), &outcomes{}
			a, b, c := scripted.ReplayEcho("a"), scripted.ReplayEcho("b"), scripted.ReplayEcho("c")
			r.together(func() { submitAll(t, st, o, a, b) })
			synctest.Wait()
			failsAs(t, st.Submit(bg, c, o), carry.NotSent, fdengine.ErrStreamBroken)
			pass(3 * time.Second)
			failed(t, o, a, carry.Answered)
			failed(t, o, b, carry.MaybeExecuted)
			require.Equal(t, []string{"b"}, r.server.Order(), "a never after b")
			require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
		})
	})
}

// Covers: E-44, E-14
func TestCloseWhileAStreamIsHeldSettlesAllOfIt(t *testing.T) {
	s := script{"a": always(scripted.Refuse("LOADING retry=60000")), "b": always(scripted.Delay(time.Minute))}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{ReadTimeout: -1}}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		a, b, c := scripted.Echo("a"), scripted.Echo("b"), scripted.Echo("c")
		r.together(func() { submitAll(t, st, o, a, b) })
		synctest.Wait()
		submitAll(t, st, o, c)
		require.NoError(t, r.Close())
		<-r.Done()
		var refusal *scripted.ServerError
		require.ErrorAs(t, settledOf(t, o, a), &refusal, "b may have run, so the refusal is the answer")
		failed(t, o, b, carry.MaybeExecuted)
		failed(t, o, c, carry.NotSent)
	})
}

// Covers: E-44, E-6
func TestAStreamWhoseRefusalsDoNotEndBreaksAtTheLimit(t *testing.T) {
	s := script{"a": always(scripted.Refuse("LOADING retry=10")), "b": always(scripted.Refuse("LOADING retry=10"))}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{MaxRefusals: 3}}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		a, b := scripted.Echo("a"), scripted.Echo("b")
		submitAll(t, st, o, a, b)
		pass(2 * time.Second)
		failed(t, o, a, carry.Answered)
		require.Equal(t, 4, a.Sends, "3 refusals that go again, and the last")
		require.Error(t, settledOf(t, o, b))
		require.Zero(t, r.server.Executed())
		require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
	})
}

// Covers: E-44, E-7, S4-14
func TestAHoldWhoseOutcomesPanicOrExitLosesNothing(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		s := script{"a": first(1, loading)}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			st := r.Stream()
			o := &outcomes{then: func(cmd fdengine.Command, _ error) {
				if cmd.(*scripted.Cmd).Token[0] != 'z' {
					deed()
				}
			}}
			a, b, c, z := scripted.Echo("a"), scripted.Echo("b"), scripted.Echo("c"), scripted.Echo("z")
			r.together(func() { submitAll(t, st, o, a, b, c); submitAll(t, r, o, z) })
			pass(time.Second)
			failed(t, o, a, carry.Answered)
			ok(t, o, b, z)
			require.Equal(t, 1, r.server.Conns(), "the connection lives")
			within(t, time.Second, func() { require.Error(t, st.Flush(bg)) })
		})
	})
}

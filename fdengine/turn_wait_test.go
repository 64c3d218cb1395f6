package fdengine_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

const tick = 5 * time.Millisecond // of the sweeper

// pushed counts the pushes that the reader has read: it reads when it does not wait for a chain.
func pushed(n *atomic.Int32) fdengine.Options {
	return fdengine.Options{OnPush: func([]byte) { n.Add(1) }}
}

// Covers: E-11
func TestAChainThatComesToAHaltKeepsNeitherReaderNorWriterForLong(t *testing.T) {
	var pushes atomic.Int32
	turnBubble(t, setup{Engine: pushed(&pushes)}, func(t *testing.T, r *rig, l *turns) {
		release, answered := r.chained()
		c, o := scripted.Echo("c"), &outcomes{}
		submitAll(t, r, o, c)
		r.server.Conn(0).Push(scripted.PushFrame("x"))
		pass(tick - 1)
		require.Zero(t, pushes.Load(), "the reader waits for the chain")
		require.Zero(t, r.server.Executions("c"))
		pass(tick + 1)
		require.EqualValues(t, 1, pushes.Load())
		require.Equal(t, 1, r.server.Executions("c"))
		ok(t, o, c)
		release()
		answered()
	})
}

// Covers: E-11
func TestAChainThatComesOnKeepsTheReaderForFourTicksAtMost(t *testing.T) {
	var pushes atomic.Int32
	turnBubble(t, setup{Engine: pushed(&pushes)}, func(t *testing.T, r *rig, l *turns) {
		release, answered := r.chained()
		r.server.Conn(0).Push(scripted.PushFrame("x"))
		cs, o := echoes("c", 25, carry.NoRetry), &outcomes{}
		for i, c := range cs {
			submitAll(t, r, o, c)
			r.StepChain()
			pass(time.Millisecond)
			if i < 18 {
				require.Zero(t, pushes.Load(), "%d ms", i)
				require.Zero(t, o.count(), "%d ms", i)
			}
		}
		require.EqualValues(t, 1, pushes.Load())
		require.NotZero(t, o.count())
		release()
		answered()
		pass(2 * tick)
		ok(t, o, cs...)
	})
}

// Covers: E-11
func TestWhatOthersSubmitDoesNotCountAsTheChainComingOn(t *testing.T) {
	var pushes atomic.Int32
	turnBubble(t, setup{Engine: pushed(&pushes)}, func(t *testing.T, r *rig, l *turns) {
		release, answered := r.chained()
		r.server.Conn(0).Push(scripted.PushFrame("x"))
		cs, o := echoes("c", 10, carry.NoRetry), &outcomes{}
		for _, c := range cs {
			submitAll(t, r, o, c)
			pass(time.Millisecond)
		}
		pass(time.Millisecond)
		require.EqualValues(t, 1, pushes.Load())
		ok(t, o, cs...)
		release()
		answered()
	})
}

// Covers: E-11
func TestAChainThatHaltsWhileNothingIsOwedKeepsTheReaderNoLonger(t *testing.T) {
	var pushes atomic.Int32
	turnBubble(t, setup{Engine: pushed(&pushes)}, func(t *testing.T, r *rig, l *turns) {
		release, answered := r.chained()
		r.server.Conn(0).Push(scripted.PushFrame("x"))
		pass(2 * tick)
		require.EqualValues(t, 1, pushes.Load())
		release()
		answered()
	})
}

// Covers: E-11
func TestAChainThatEndsInTimeIsWrittenByTheReaderHoweverLongItCameOn(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		release, answered := r.chained()
		l.take()
		cs, o := echoes("c", 15, carry.NoRetry), &outcomes{}
		for _, c := range cs {
			submitAll(t, r, o, c)
			r.StepChain()
			pass(time.Millisecond)
		}
		require.Zero(t, o.count())
		release()
		answered()
		synctest.Wait()
		ok(t, o, cs...)
		require.Equal(t, []writing{{true, bytesOf(cs...), bytesOf(cs...)}}, l.take())
	})
}

// Covers: E-11
func TestHowLongAReaderWaitsForAChain(t *testing.T) {
	type look = fdengine.Look
	const tick = int64(tick)
	for name, c := range map[string]struct {
		began int64
		looks []look
		ends  int // at which of them the wait does
	}{
		"halts":                     {7 * tick, []look{{1, false}, {tick - 1, false}, {tick, false}, {2 * tick, false}}, 2},
		"is not over before a tick": {0, []look{{0, false}, {tick - 2, false}}, -1}, // the clock may stand at zero when it begins
		"halts later":               {7 * tick, []look{{tick, true}, {2 * tick, true}, {3 * tick, false}}, 2},
		"comes on for ever":         {7 * tick, []look{{tick, true}, {2 * tick, true}, {3 * tick, true}, {4 * tick, true}, {5 * tick, true}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, c.ends, fdengine.AwaitTurn(c.began, c.looks...))
			})
		})
	}
}

// Covers: P10, E-11
func TestACutEndsTheWaitForAChainAtOnce(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, r *rig){
		"close": func(t *testing.T, r *rig) { require.NoError(t, r.Close()) },
		"fault": func(_ *testing.T, r *rig) { r.Fault(false) },
	} {
		t.Run(name, func(t *testing.T) {
			turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
				release, answered := r.chained()
				o := &outcomes{}
				submitAll(t, r, o, echoes("c", 5, carry.NoRetry)...)
				start := time.Now()
				end(t, r)
				synctest.Wait()
				require.Equal(t, 1, r.leaser.Counts().Removes, "the reader has been joined")
				require.Zero(t, time.Since(start))
				release()
				answered()
				pass(time.Minute)
				require.Equal(t, 5, o.count())
			})
		})
	}
}

// Shutdown came when the last reply had been read and a caller was still to wake the others.
//
// Covers: P10
func TestShutdownDuringAChainEndsInTime(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		release, answered := r.chained()
		c, o := scripted.Echo("c"), &outcomes{}
		submitAll(t, r, o, c)
		within(t, 2*time.Second, func() {
			_, err := r.Shutdown(bg)
			require.NoError(t, err)
		})
		ok(t, o, c)
		release()
		answered()
	})
}

// Covers: E-10, E-11
func TestWhatWaitsForRepliesIsForcedOutAfterAWholeTickAndNotBefore(t *testing.T) {
	for phase := time.Duration(0); phase < tick; phase += tick / 5 {
		bubble(t, setup{Wrap: wrapLocal}, func(t *testing.T, r *rig) {
			before, answered := crowded(t, r)
			pass(phase)
			late := r.later(bg, scripted.Echo("late"))
			pass(tick - 1)
			require.Equal(t, before, r.server.Arrived(), "less than a tick, phase %v", phase)
			pass(tick + 1)
			require.Equal(t, before+1, r.server.Arrived(), "two ticks, phase %v", phase)
			r.server.FreezeReplies(false)
			answered()
			require.NoError(t, <-late)
		})
	}
}

// Covers: S4-3
func TestTheReaderClaimsOnlyWhatTheEngineGoroutineWouldToo(t *testing.T) {
	require.True(t, fdengine.MayClaim("as it is"))
	for _, name := range fdengine.Arrangements() {
		require.False(t, fdengine.MayClaim(name), name)
	}
}

// More callers than a chain has are woken by several, and then nobody waits for them.
//
// Covers: E-11
func TestNobodyWaitsForSeveralChains(t *testing.T) {
	began, waits := fdengine.LinkMany(1)
	require.Equal(t, []int{0, 1}, []int{began, waits})
	began, waits = fdengine.LinkMany(fdengine.ChainMax)
	require.Equal(t, []int{0, fdengine.ChainMax}, []int{began, waits})
	began, waits = fdengine.LinkMany(2*fdengine.ChainMax + 5)
	require.Equal(t, []int{2, 5}, []int{began, waits})
}

// A reader that foreign code ended between its chunk and its wait was taken for one that waits, for ever, and a silent server was not cut.
//
// Covers: P8, E-11
func TestAReaderThatEndedBeforeItsWaitIsNotTakenForOneThatWaits(t *testing.T) {
	var exits atomic.Bool
	l := &limiter{onReport: func() {
		if exits.CompareAndSwap(true, false) {
			runtime.Goexit()
		}
	}}
	bubble(t, setup{Engine: fdengine.Options{Limiter: l, ReadTimeout: 100 * time.Millisecond}}, func(t *testing.T, r *rig) {
		r.SetWorthWaiting(1)
		require.NoError(t, r.Ping(bg))
		synctest.Wait()
		exits.Store(true)
		require.NoError(t, r.Do(bg, scripted.Echo("a")))
		synctest.Wait()
		require.False(t, exits.Load())
		r.server.FreezeReplies(true)
		done := r.later(bg, scripted.Echo("b"))
		pass(time.Second)
		require.NotZero(t, r.Stats().Cuts)
		r.server.FreezeReplies(false)
		require.Error(t, <-done)
	})
}

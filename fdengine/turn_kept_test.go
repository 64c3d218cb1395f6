package fdengine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// heldWrite lets the reader come to its write, and keeps it there until free is closed.
func (r *rig) heldWrite(l *turns, o *outcomes, cs []*scripted.Cmd) (free chan struct{}) {
	r.t.Helper()
	in := make(chan struct{})
	free = make(chan struct{})
	arm, stop := once(func() { close(in); <-free })
	l.before = stop
	release, answered := r.chained()
	submitAll(r.t, r, o, cs...)
	arm()
	go release()
	answered()
	<-in
	return free
}

// Covers: E-11
func TestTheEngineGoroutineThatWaitedForTheReadersWriteGoesOnBehindIt(t *testing.T) {
	turnBubble(t, setup{Server: script{"more": always(scripted.Action{NoReply: true})}.options()}, func(t *testing.T, r *rig, l *turns) {
		cs, o := span(), &outcomes{}
		free := r.heldWrite(l, o, cs)
		pass(2 * tick)
		submitAll(t, r, o, quiet("more"))
		pass(2 * tick) // the sweeper makes the engine goroutine look after it
		require.Zero(t, r.server.Executions("more"))
		close(free)
		synctest.Wait()
		ok(t, o, cs...)
		require.Equal(t, 1, r.server.Executions("more"), "at once")
	})
}

// Covers: E-11
func TestNothingWaitsBehindAWriteOfTheReadersThatHasReturned(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		o := &outcomes{}
		cs := span()
		r.turn(l, func() { submitAll(t, r, o, cs...) })
		ok(t, o, cs...)
		c := scripted.Echo("next")
		done := r.later(bg, c)
		synctest.Wait()
		require.Len(t, done, 1)
		require.NoError(t, <-done)
	})
}

// Covers: S4-3
func TestABigSubmitDuringAChainIsTheReadersToWriteToo(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		cs, o := echoes("c", 4, carry.NoRetry), &outcomes{}
		for _, c := range cs {
			c.Args = []string{string(make([]byte, 10<<10))}
		}
		all := r.turn(l, func() { submitAll(t, r, o, cs...) })
		require.Equal(t, []writing{{true, bytesOf(cs...), bytesOf(cs...)}}, all)
		ok(t, o, cs...)
	})
}

// Covers: S4-14, E-6
func TestAFaultOfTheEngineGoroutineSaysNothingOfTheReadersWrite(t *testing.T) {
	require.Equal(t, 0, fdengine.Unsure(true))
	require.Equal(t, 1, fdengine.Unsure(false))
}

// Covers: E-10
func TestTheReadersWriteKeepsTheWindow(t *testing.T) {
	turnBubble(t, setup{Engine: fdengine.Options{Window: 6}}, func(t *testing.T, r *rig, l *turns) {
		cs, o := echoes("c", 20, carry.NoRetry), &outcomes{}
		r.turn(l, func() { submitAll(t, r, o, cs...) })
		ok(t, o, cs...)
		require.LessOrEqual(t, r.server.MaxUnanswered(), 6)
	})
}

// Covers: P10
func TestCloseDuringTheReadersWriteEndsWithIt(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		cs, o := span(), &outcomes{}
		free := r.heldWrite(l, o, cs)
		require.NoError(t, r.Close())
		pass(time.Second)
		for _, c := range cs {
			failed(t, o, c, carry.MaybeExecuted, fdengine.ErrClosed)
		}
		close(free)
		within(t, time.Second, func() { <-r.Done() })
		require.Zero(t, r.Stats().Panics)
	})
}

// Covers: E-11
func TestAnEngineGoroutineKeptByTheReadersWriteIsToldOfItsEnd(t *testing.T) {
	require.True(t, fdengine.KeptIsTold(true))
	require.False(t, fdengine.KeptIsTold(false))
}

// Covers: S4-14, P10
func TestAFaultOfOurOwnWithTheLockHeldCostsTheSessionOnly(t *testing.T) {
	for name, fault := range map[string]func() (cut, free bool){
		"engine goroutine":  fdengine.FaultInTheWriteLoop,
		"the reader's turn": fdengine.FaultInTheReadersTurn,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cut, free := fault()
				require.True(t, cut)
				require.True(t, free)
			})
		})
	}
}

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

// Covers: S4-14, A-7
func TestAFaultOfOurOwnWithAConsistentLogIsACut(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		n, p := scripted.Echo("n"), scripted.ReplayEcho("p")
		r.together(func() {
			submitAll(t, r, oc, n, p)
			synctest.Wait()
			r.Fault(false)
		})
		pass(2 * time.Second)
		failed(t, oc, n, carry.MaybeExecuted)
		ok(t, oc, p)
		require.Equal(t, uint64(1), r.Stats().Cuts)
		require.NoError(t, r.Do(bg, scripted.Echo("after")))
	})
}

// Covers: S4-14, A-7
func TestAFaultOfOurOwnThatBrokeTheLogStopsTheEngineForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{})
		oc := &outcomes{}
		cs := echoes("c", 5, carry.Replay)
		r.together(func() {
			submitAll(t, r, oc, cs...)
			synctest.Wait()
			r.Fault(true)
		})
		<-r.Done()
		for _, c := range cs[1:] { // the first was acked without an outcome: that is the bug
			failed(t, oc, c, carry.MaybeExecuted, fdengine.ErrBroken)
		}
		failsAs(t, r.Do(bg, scripted.Echo("x")), carry.NotSent, fdengine.ErrBroken)
		failsAs(t, r.TrySubmit(scripted.Echo("x"), oc), carry.NotSent, fdengine.ErrBroken)
		require.ErrorIs(t, r.Stream().Reset(), fdengine.ErrBroken)
		require.Equal(t, "closed", r.Stats().State)
		require.NoError(t, r.leaser.Check())
		r.leaser.Close()
		require.NoError(t, r.server.Close())
	})
}

// Covers: S0-29
func TestNoStateLeadsOutOfClosedAndOnlyALeaseLeadsToRunning(t *testing.T) {
	moves := fdengine.LegalMoves()
	require.Empty(t, moves["closed"])
	for from, tos := range moves {
		require.Contains(t, tos, "closed")
		for _, to := range tos {
			if to == "running" {
				require.Equal(t, "leasing", from)
			}
		}
	}
}

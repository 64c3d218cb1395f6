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

// A lent connection whose command ran out of its own time is as unfit as one whose caller left: the server may hold
// the reply, and take a job for it, for long yet.
//
// Covers: E-19
func TestASettleByTimeThatPassesOnALentConnectionCutsIt(t *testing.T) {
	s := script{"block": always(scripted.Delay(time.Hour))}
	o := fdengine.Options{Window: 1, ReadTimeout: -1, CutOnCancel: true}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		c := scripted.Echo("block")
		c.Traits.Timeout = 100 * time.Millisecond
		failsAs(t, r.Do(bg, c), carry.MaybeExecuted, fdengine.ErrTimeout)
		synctest.Wait()
		require.Equal(t, uint64(1), r.Stats().Cuts)
		require.NoError(t, r.Do(bg, scripted.Echo("next")))
		require.Equal(t, 2, r.server.Conns())
	})
}

// Covers: E-16
func TestTheServerMayHoldABlockingReplyForItsBlockTimeAndReadTimeout(t *testing.T) {
	s := script{"held": always(scripted.Delay(4 * time.Second)), "late": always(scripted.Delay(time.Minute))}
	o := fdengine.Options{Window: 1, ReadTimeout: time.Second}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		held := scripted.Echo("held")
		held.Traits.Block = 3500 * time.Millisecond
		require.NoError(t, r.Do(bg, held))
		ever := scripted.Echo("late")
		ever.Traits.Block = -1
		require.NoError(t, r.Do(bg, ever))
		late := scripted.Echo("late")
		late.Traits.Block = time.Second
		at := time.Now()
		require.Error(t, r.Do(bg, late))
		require.InDelta(t, 2*time.Second, time.Since(at), float64(200*time.Millisecond))
	})
}

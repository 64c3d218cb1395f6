package fdengine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// Settle-by times that lie close together are each met in their own time: never early, and at most two ticks late.
//
// Covers: E-19
func TestEachSettleByTimeIsMetInItsOwnTimeAndNeverEarly(t *testing.T) {
	bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
		start := time.Now()
		took := map[fdengine.Command]time.Duration{}
		o := &outcomes{}
		o.then = func(cmd fdengine.Command, _ error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			took[cmd] = time.Since(start)
		}
		cs := echoes("c", 20, carry.NoRetry)
		for i, c := range cs {
			c.Traits.Timeout = time.Duration(50+7*i) * time.Millisecond
		}
		submitAll(t, r, o, cs...)
		pass(time.Second)
		for _, c := range cs {
			failed(t, o, c, carry.NotSent, fdengine.ErrTimeout)
			require.GreaterOrEqual(t, took[c], c.Traits.Timeout)
			require.LessOrEqual(t, took[c], c.Traits.Timeout+15*time.Millisecond)
		}
	})
}

// Each answer makes room in the window for one more. The writer is told at once, not by the sweeper, tick by tick.
//
// Covers: E-11
func TestAnAnswerThatMakesRoomInTheWindowWakesTheWriterAtOnce(t *testing.T) {
	for _, window := range []int{1, 3} {
		bubble(t, setup{Engine: fdengine.Options{Window: window}}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Ping(bg))
			cs := echoes("c", 60, carry.NoRetry)
			var waits sync.WaitGroup
			r.together(func() { // callers who wait: what tells a completion wakes the writer by itself
				for _, c := range cs {
					waits.Go(func() { require.NoError(t, r.Do(bg, c)) })
				}
			})
			start := time.Now()
			waits.Wait()
			require.Less(t, time.Since(start), 5*time.Millisecond, "60 round trips that take no time")
		})
	}
}

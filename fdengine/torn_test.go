package fdengine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// takes30000 is a network whose peers take so many bytes of each connection, and then no more: a server with a limit for
// one request, or something on the way.
func takes30000(_ int, c, _ *memnet.Conn) error {
	c.Out().SetBuffer(4096)
	c.Out().StallAt(30_000)
	return nil
}

// What no server takes whole ends when more connections than its budget have died of it without any answer, and MaxOutage has passed since
// the first one; those behind it go on.
//
// Covers: E-46, E-1
func TestARequestThatNeverLeavesWholeEndsAndHoldsUpNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		class    carry.Class
		answered bool          // something on the first connection
		budget   int           //
		outage   time.Duration //
		cuts     uint64        // at least
		after    time.Duration // at least; twice that at most
	}{
		"NoRetry":               {carry.NoRetry, false, 1, 5 * time.Second, 6, 5 * time.Second},
		"Replay":                {carry.Replay, false, 1, 5 * time.Second, 6, 5 * time.Second},
		"by the number":         {carry.Replay, false, 1, 500 * time.Millisecond, 4, 2 * time.Second},
		"behind something else": {carry.Replay, true, 1, 500 * time.Millisecond, 5, 2500 * time.Millisecond},
		"by its budget":         {carry.Replay, false, 19, 500 * time.Millisecond, 20, 10 * time.Second},
		"no outage is too long": {carry.Replay, false, 1, -1, 30, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup{Engine: fdengine.Options{
				WriteTimeout: 500 * time.Millisecond, ReadTimeout: 400 * time.Millisecond, BackoffMax: 10 * time.Millisecond,
				Budget: tc.budget, MaxOutage: tc.outage,
			}, OnDial: takes30000}
			bubble(t, s, func(t *testing.T, r *rig) {
				big := &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 100_000)}}
				big.Traits.Class = tc.class
				if tc.answered {
					require.NoError(t, r.Ping(bg))
				}
				start := time.Now()
				var took time.Duration
				o := &outcomes{then: func(cmd fdengine.Command, _ error) {
					if cmd == big {
						took = time.Since(start)
					}
				}}
				small := scripted.Echo("small")
				submitAll(t, r, o, big, small)
				pass(2 * time.Minute)
				failed(t, o, big, carry.NotSent, fdengine.ErrPoisoned, fdengine.ErrBudget)
				ok(t, o, small)
				require.GreaterOrEqual(t, took, tc.after)
				require.Less(t, took, 2*tc.after)
				require.GreaterOrEqual(t, r.Stats().Cuts, tc.cuts)
				require.Zero(t, r.server.Executions("big"))
			})
		})
	}
}

// A server that starts, or a balancer that hangs up for a while, tears large requests as well.
//
// Covers: E-46, E-37
func TestARequestThatWasTornOftenArrivesWhenItCan(t *testing.T) {
	for _, class := range []carry.Class{carry.NoRetry, carry.Replay} {
		dial := func(n int, c, s *memnet.Conn) error {
			if n <= 12 {
				return takes30000(n, c, s)
			}
			return nil
		}
		bubble(t, setup{Engine: fdengine.Options{WriteTimeout: 500 * time.Millisecond}, OnDial: dial}, func(t *testing.T, r *rig) {
			big := &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 100_000)}}
			big.Traits.Class = class
			require.NoError(t, r.Do(bg, big))
			require.Equal(t, 1, r.server.Executions("big"))
			require.Equal(t, uint64(12), r.Stats().Cuts)
		})
	}
}

// Covers: E-46, E-18
func TestShutdownEndsThoughARequestNeverLeavesWhole(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{WriteTimeout: 500 * time.Millisecond}, OnDial: takes30000}, func(t *testing.T, r *rig) {
		big := r.later(bg, &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 100_000)}})
		pass(100 * time.Millisecond)
		within(t, time.Minute, func() {
			_, err := r.Shutdown(bg)
			require.NoError(t, err)
		})
		failsAs(t, <-big, carry.NotSent, fdengine.ErrPoisoned)
	})
}

// How long it had waited before does not count.
//
// Covers: E-46
func TestARequestThatWaitedLongIsNotEndedByAMomentOfTears(t *testing.T) {
	dial := func(n int, c, s *memnet.Conn) error {
		if n <= 8 {
			return takes30000(n, c, s)
		}
		return nil
	}
	bubble(t, setup{Server: script{"slow": always(scripted.Delay(6 * time.Second))}.options(), Engine: fdengine.Options{
		Window: 1, WriteTimeout: 20 * time.Millisecond, ReadTimeout: 20 * time.Second, MaxOutage: 5 * time.Second, BackoffMax: 10 * time.Millisecond,
	}, OnDial: dial}, func(t *testing.T, r *rig) {
		slow := r.later(bg, scripted.Echo("slow"))
		pass(10 * time.Millisecond)
		require.NoError(t, r.Do(bg, &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 100_000)}}))
		require.NoError(t, <-slow)
		require.Equal(t, uint64(8), r.Stats().Cuts)
	})
}

// Covers: E-46
func TestARequestThatWasTakenWholeOnceIsNotToBlame(t *testing.T) {
	dial := func(n int, c, s *memnet.Conn) error {
		if n <= 4 || n == 6 {
			return takes30000(n, c, s)
		}
		return nil
	}
	bubble(t, setup{Server: script{"big": first(1, scripted.Delay(time.Hour))}.options(), Engine: fdengine.Options{
		WriteTimeout: 50 * time.Millisecond, ReadTimeout: 6 * time.Second, MaxOutage: 5 * time.Second, BackoffMax: 10 * time.Millisecond,
	}, OnDial: dial}, func(t *testing.T, r *rig) {
		big := &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 100_000)}}
		big.Traits.Class = carry.Replay
		require.NoError(t, r.Do(bg, big))
		require.Equal(t, 7, r.server.Conns())
	})
}

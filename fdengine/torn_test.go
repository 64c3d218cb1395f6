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

// What no server takes whole ends after four connections that died of it without any answer, and those behind it go on.
//
// Covers: E-46, E-1
func TestARequestThatNeverLeavesWholeEndsAndHoldsUpNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		class    carry.Class
		answered bool // something on the first connection
		cuts     uint64
	}{
		"NoRetry":               {carry.NoRetry, false, 4},
		"Replay":                {carry.Replay, false, 4},
		"behind something else": {carry.Replay, true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup{Engine: fdengine.Options{WriteTimeout: 500 * time.Millisecond, ReadTimeout: 400 * time.Millisecond, MaxOutage: 5 * time.Second}, OnDial: takes30000}
			bubble(t, s, func(t *testing.T, r *rig) {
				o := &outcomes{}
				big := &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 100_000)}}
				big.Traits.Class = tc.class
				small := scripted.Echo("small")
				if tc.answered {
					require.NoError(t, r.Ping(bg))
				}
				submitAll(t, r, o, big, small)
				pass(time.Minute)
				failed(t, o, big, carry.NotSent, fdengine.ErrPoisoned, fdengine.ErrBudget)
				ok(t, o, small)
				require.Equal(t, tc.cuts, r.Stats().Cuts)
				require.Zero(t, r.server.Executions("big"))
			})
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

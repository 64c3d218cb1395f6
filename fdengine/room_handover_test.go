package fdengine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// leaver makes a context whose end is noticed in two steps: after leave its caller has left the wait for room, and
// before note it takes notice of nothing else.
func leaver() (ctx context.Context, leave, note func()) {
	inner, cancel := context.WithCancel(bg)
	told := make(chan struct{})
	return &hesitant{inner, func() { <-told }}, cancel, func() { close(told) }
}

// The moment at which a caller leaves and is let in: a reservation that nobody gives back makes the engine smaller for
// ever. A storm of cancels met it once in a thousand runs.
//
// Covers: C27, E-12
func TestACallerWhoLeavesAtTheMomentItIsLetInGivesTheRoomBack(t *testing.T) {
	for name, do := range map[string]func(context.Context, *rig) error{
		"Do": func(ctx context.Context, r *rig) error { return r.Do(ctx, scripted.Echo("w")) },
		"Submit": func(ctx context.Context, r *rig) error {
			return r.Submit(ctx, scripted.Echo("w"), &outcomes{})
		},
		"DoBatch": func(ctx context.Context, r *rig) error {
			return r.DoBatch(ctx, []fdengine.Command{scripted.Echo("v"), scripted.Echo("w")}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{Engine: fdengine.Options{Window: 5, Queue: 5}}, func(t *testing.T, r *rig) {
				for range 20 { // what those who wait are told by is used again
					fill(t, r)
					ctx, leave, note := leaver()
					res := make(chan error, 1)
					go func() { res <- do(ctx, r) }()
					synctest.Wait()
					leave()
					synctest.Wait()
					r.server.FreezeExec(false) // room comes back, and goes to the one who has left
					synctest.Wait()
					note()
					failsAs(t, <-res, carry.NotSent, context.Canceled, fdengine.ErrNotSent)
					require.Zero(t, r.server.Executions("w"))
				}
				fill(t, r)
				r.server.FreezeExec(false)
				pass(time.Second)
			})
		})
	}
}

// fill takes the ten places of the engine, of which none is freed before the server is thawed.
func fill(t *testing.T, r *rig) {
	t.Helper()
	r.server.FreezeExec(true)
	n, oc := 0, &outcomes{}
	for range 20 {
		if r.TrySubmit(scripted.Echo("y"), oc) == nil {
			n++
		}
	}
	require.Equal(t, 10, n)
	synctest.Wait()
}

// Nothing is in flight whose reply would look again for those who wait.
//
// Covers: C27, E-11
func TestWhoWaitsBehindACallerWhoLeftWhenItWasLetInIsLetIn(t *testing.T) {
	o := fdengine.Options{WindowBytes: 1000, QueueBytes: 1000}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeExec(true)
		a := r.later(bg, scripted.Echo("a"))
		synctest.Wait()
		ctx, leave, note := leaver()
		big := r.later(ctx, &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 50_000)}}) // enters alone
		synctest.Wait()
		b := r.later(bg, scripted.Echo("b"))
		synctest.Wait()
		leave()
		synctest.Wait()
		r.server.FreezeExec(false)
		require.NoError(t, <-a)
		synctest.Wait()
		require.Empty(t, b, "the big one has all the room, and has left")
		note()
		failsAs(t, <-big, carry.NotSent, context.Canceled)
		synctest.Wait() // no tick of the clock, at which the sweeper would help
		require.Len(t, b, 1)
		require.NoError(t, <-b)
		require.Equal(t, []string{"a", "b"}, r.server.Order())
	})
}

package fdengine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/scripted"
)

// Covers: S4-1, E-1
func TestManyCallersShareOneConnectionAndEachGetsItsOwnReply(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for i := range 200 {
					c := scripted.Echo(fmt.Sprintf("t%d-%d", g, i))
					require.NoError(t, r.Do(context.Background(), c))
					require.Equal(t, c.Token, c.Reply)
				}
			})
		}
		within(t, time.Minute, wg.Wait)
		require.Equal(t, 1, r.server.Conns())
		r.even()
	})
}

func TestACutIsReplayed(t *testing.T) {
	drop := true
	bubble(t, setup{Server: scripted.Options{Script: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Token() == "b" && drop {
			drop = false
			return scripted.DropAfter()
		}
		return scripted.Action{}
	}}}, func(t *testing.T, r *rig) {
		a, b := scripted.ReplayEcho("a"), scripted.ReplayEcho("b")
		require.NoError(t, r.Do(context.Background(), a))
		require.NoError(t, r.Do(context.Background(), b))
		require.Equal(t, 2, b.Sends)
		require.True(t, b.Maybe)
		require.Equal(t, 2, r.server.Executions("b"))
	})
}

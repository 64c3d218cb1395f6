package fdengine_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// Some of the callers in a chain leave at the moment when they are answered, and must hand on.
//
// Covers: E-11
func TestAllCallersOfABigChunkAreWokenWhoeverOfThemLeaves(t *testing.T) {
	const n = 2300
	bubble(t, setup{Engine: fdengine.Options{Window: 4096}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		for round := range 6 {
			r.server.FreezeReplies(true)
			ctx, leave := context.WithCancel(bg)
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					c, own := scripted.Echo(itoa(i)), bg
					if i%3 == round%3 {
						own = ctx
					}
					switch err := r.Do(own, c); {
					case err == nil && c.Reply != c.Token:
						t.Errorf("%s was answered %q", c.Token, c.Reply)
					case err != nil && (own == bg || !errors.Is(err, context.Canceled)):
						t.Errorf("%s: %v", c.Token, err)
					}
				})
			}
			synctest.Wait()
			require.Equal(t, n, r.Stats().InFlightCommands)
			go leave()
			r.server.FreezeReplies(false)
			within(t, time.Second, wg.Wait)
			synctest.Wait()
			require.Zero(t, r.Chains(), "each chain that was begun has been counted out")
		}
		require.Equal(t, 1, r.server.Conns())
	})
}

// nowhere is a connection that does not know whom it leads to.
type nowhere struct{ net.Conn }

func (nowhere) RemoteAddr() net.Addr { return nil }

func TestAConnectionWithoutAnAddressIsToldWithoutOne(t *testing.T) {
	o := &events{}
	wrap := func(c net.Conn) net.Conn { return nowhere{c} }
	bubble(t, setup{Wrap: wrap, Engine: fdengine.Options{Observer: o}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("a")))
		started := o.of(fdengine.EventSessionStart)
		require.Len(t, started, 1)
		require.Empty(t, started[0].Addr)
	})
}

package fdengine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// The server began to say something while nothing was in flight, and a command was sent before it ended. What ends then
// is not the command's reply: it began before the command left.
//
// Covers: E-37, E-1
func TestAReplyThatBeganBeforeItsCommandWasSentIsNobodys(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.Conn(0).Push([]byte("+HAL"))
		pass(time.Second)
		require.Zero(t, r.Stats().Cuts, "it may yet become a push")
		n := scripted.Echo("n")
		failsAs(t, r.Do(bg, n), carry.MaybeExecuted)
		require.Zero(t, n.Decodes)
		require.Equal(t, uint64(1), r.Stats().Cuts)
		after := scripted.Echo("after")
		require.NoError(t, r.Do(bg, after))
		require.Equal(t, "after", after.Reply)
	})
}

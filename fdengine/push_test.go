package fdengine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/scripted"
)

// Nobody asked to be told of pushes. They are not taken for replies all the same.
//
// Covers: E-30
func TestAPushWithoutAHandlerIsDropped(t *testing.T) {
	push := scripted.PushFrame("message", "ch", "hello")
	s := script{"a": always(scripted.Action{PushBefore: push, PushAfter: push})}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		o, a, b := &outcomes{}, scripted.Echo("a"), scripted.Echo("b")
		r.together(func() { submitAll(t, r, o, a, b) })
		pass(time.Second)
		r.server.Conn(0).Push(push)
		pass(time.Second)
		ok(t, o, a, b)
		require.NoError(t, r.Do(bg, scripted.Echo("c")))
		require.Equal(t, 1, r.server.Conns())
	})
}

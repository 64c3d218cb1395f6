package fdengine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
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

// A push of any size would make the buffer grow to it. It is nobody's answer, so it costs nobody a command.
//
// Covers: E-30, E-36
func TestAPushBeyondTheLimitCutsTheConnectionAndIsChargedToNobody(t *testing.T) {
	for name, push := range map[string]string{
		"whole":     string(scripted.PushFrame("message", strings.Repeat("x", 5000))),
		"announced": ">2\r\n$7\r\nmessage\r\n$100000\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := script{"a": first(1, scripted.Action{PushBefore: []byte(push), NoReply: true})}
			bubble(t, setup{Server: s.options(), Engine: fdengine.Options{MaxReply: 4096}}, func(t *testing.T, r *rig) {
				o, a, b := &outcomes{}, scripted.Echo("a"), scripted.Echo("b")
				a.Traits.Class = carry.Replay
				r.together(func() { submitAll(t, r, o, a, b) })
				pass(time.Second)
				ok(t, o, a)
				failed(t, o, b, carry.MaybeExecuted)
				var framing *fdengine.FramingError
				require.ErrorAs(t, settledOf(t, o, b), &framing)
				require.ErrorContains(t, framing, "push of at least")
				require.Equal(t, 2, r.server.Conns())
			})
		})
	}
}

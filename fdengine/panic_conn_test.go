package fdengine_test

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// nasty is a connection of somebody else's making that fails where nobody looks at the result.
type nasty struct {
	net.Conn
	closing, deadline func()
}

func (n *nasty) Close() error {
	defer func() { _ = n.Conn.Close() }()
	if n.closing != nil {
		n.closing()
	}
	return nil
}

func (n *nasty) SetReadDeadline(t time.Time) error {
	if n.deadline != nil {
		n.deadline()
	}
	return n.Conn.SetReadDeadline(t)
}

// A connection panicked in Close, or in the deadline that makes the reader leave it: on the engine's own goroutine,
// outside of all borders. The program ended.
//
// Covers: S4-14
func TestAConnectionThatPanicsInCloseOrDeadlineCostsItselfOnly(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		s := script{"d": first(1, scripted.DropAfter())}
		wrap := func(c net.Conn) net.Conn { return &nasty{Conn: c, closing: deed} }
		bubble(t, setup{Server: s.options(), Wrap: wrap}, func(t *testing.T, r *rig) {
			o, n, p := &outcomes{}, scripted.Echo("n"), scripted.ReplayEcho("p")
			require.NoError(t, r.Do(bg, scripted.ReplayEcho("d")))
			r.together(func() { submitAll(t, r, o, n, p) })
			pass(time.Second)
			ok(t, o, n, p)
			require.Equal(t, uint64(1), r.Stats().Cuts)
			require.Equal(t, 2, r.server.Conns())
		})
	})
	for name, deed := range misdeeds {
		t.Run("deadline "+name, func(t *testing.T) {
			o := fdengine.Options{IdleRelease: 30 * time.Second}
			wrap := func(c net.Conn) net.Conn { return &nasty{Conn: c, deadline: deed} }
			bubble(t, setup{Engine: o, Wrap: wrap}, func(t *testing.T, r *rig) {
				require.NoError(t, r.Do(bg, scripted.Echo("a")))
				pass(40 * time.Second)
				require.Equal(t, 1, r.leaser.Counts().Removes, "nobody knows its state")
				b := scripted.Echo("b")
				require.NoError(t, r.Do(bg, b))
				require.Equal(t, 2, r.server.Conns())
				o := &outcomes{}
				submitAll(t, r, o, echoes("c", 10, carry.NoRetry)...)
				pass(time.Second)
				require.Equal(t, 10, o.count())
			})
		})
	}
}

// A connection's Read ended its goroutine after it had taken bytes off the wire. The reader was started again and
// read on behind the gap: each reply went to the command before its own.
//
// Covers: S4-14, E-3, E-5
func TestAReadThatExitsIsACut(t *testing.T) {
	c := &touchy{afterRead: runtime.Goexit}
	bubble(t, setup{Wrap: firstOnly(c)}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		o, n, p := &outcomes{}, scripted.Echo("n"), scripted.ReplayEcho("p")
		r.together(func() {
			submitAll(t, r, o, n, p)
			c.armed.Store(true)
		})
		submitAll(t, r, o, scripted.ReplayEcho("q"))
		pass(10 * time.Second)
		failed(t, o, n, carry.MaybeExecuted)
		ok(t, o, p)
		require.Equal(t, 1, r.server.Executions("n"))
		require.Equal(t, uint64(1), r.Stats().Cuts)
	})
}

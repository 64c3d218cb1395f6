package fdengine_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// reading lets the reader be in the middle of a chunk that answers asynchronous commands only, until the chunk is released.
func (r *rig) reading(g *fdengine.Group) (release func()) {
	r.t.Helper()
	require.NoError(r.t, r.Ping(bg))
	gate, c := make(chan struct{}), scripted.Echo("read")
	c.OnDecode = func(fdengine.Reply) { <-gate }
	grouped(r.t, r, g, c)
	synctest.Wait()
	return func() { close(gate) }
}

// Covers: S4-3
func TestTheReaderWritesWhatWasSubmittedWhileItReadForOthers(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		g := fdengine.NewGroup()
		release := r.reading(g)
		l.take()
		cs, o := echoes("c", 5, carry.NoRetry), &outcomes{}
		submitAll(t, r, o, cs...)
		synctest.Wait()
		require.Empty(t, l.take(), "more may be said until the chunk ends")
		release()
		synctest.Wait()
		size := bytesOf(cs...)
		require.Equal(t, []writing{{true, size, size}}, l.take())
		require.NoError(t, g.Wait(bg))
		ok(t, o, cs...)
	})
}

// What the connection does not take is the engine goroutine's, as after a chain.
func TestTheRestOfWhatTheReaderWroteForOthersIsWrittenAllTheSame(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		g := fdengine.NewGroup()
		release := r.reading(g)
		l.take()
		cs, o := echoes("c", 5, carry.NoRetry), &outcomes{}
		submitAll(t, r, o, cs...)
		l.takes = 7
		release()
		synctest.Wait()
		size := bytesOf(cs...)
		require.Equal(t, []writing{{true, 7, size}, {false, size - 7, size - 7}}, l.take())
		require.NoError(t, g.Wait(bg))
		ok(t, o, cs...)
		require.Equal(t, tokens(cs), r.server.Order()[1:])
	})
}

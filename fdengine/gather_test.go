package fdengine_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// onThisHost makes a connection look like one to a server on the same host.
type onThisHost struct{ net.Conn }

func (onThisHost) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379} }

func wrapLocal(c net.Conn) net.Conn { return onThisHost{c} }

// crowded puts ten commands in flight whose replies the server withholds, after one that was answered at once. It
// returns how many requests the server has, and a wait for the ten.
func crowded(t *testing.T, r *rig) (arrived int, answered func()) {
	t.Helper()
	require.NoError(t, r.Do(bg, scripted.Echo("first")))
	require.NoError(t, r.Do(bg, scripted.Echo("second"))) // the first reply may have come before its write returned: how near the server is is known now
	r.server.FreezeReplies(true)
	done := make(chan error, 1)
	go func() { done <- r.DoBatch(bg, commands(echoes("c", 10, carry.Replay)), nil) }()
	synctest.Wait()
	return r.server.Arrived(), func() { require.NoError(t, <-done) }
}

// Covers: E-10
func TestOnTheSameHostAFewCommandsWaitForTheRepliesOfMany(t *testing.T) {
	bubble(t, setup{Wrap: wrapLocal}, func(t *testing.T, r *rig) {
		before, answered := crowded(t, r)
		late := r.later(bg, scripted.Echo("late"))
		synctest.Wait()
		require.Equal(t, before, r.server.Arrived(), "it waits for replies")
		at := time.Now()
		r.server.FreezeReplies(false)
		answered()
		require.NoError(t, <-late)
		require.Zero(t, time.Since(at), "and for nothing else")
	})
}

// Covers: E-10
func TestAQuarterOfWhatIsInFlightWaitsForNothing(t *testing.T) {
	bubble(t, setup{Wrap: wrapLocal}, func(t *testing.T, r *rig) {
		before, answered := crowded(t, r)
		done := make(chan error, 1)
		go func() { done <- r.DoBatch(bg, commands(echoes("d", 2, carry.Replay)), nil) }()
		synctest.Wait()
		require.Equal(t, before+2, r.server.Arrived(), "the server would run dry")
		r.server.FreezeReplies(false)
		answered()
		require.NoError(t, <-done)
	})
}

// Covers: E-10
func TestWhatWaitsForRepliesIsWrittenAllTheSameWhenTheServerIsSlow(t *testing.T) {
	bubble(t, setup{Wrap: wrapLocal}, func(t *testing.T, r *rig) {
		before, answered := crowded(t, r)
		late := r.later(bg, scripted.Echo("late"))
		synctest.Wait()
		require.Equal(t, before, r.server.Arrived(), "it waits for replies")
		pass(10 * time.Millisecond)
		require.Equal(t, before+1, r.server.Arrived(), "no longer than two ticks")
		later := r.later(bg, scripted.Echo("later"))
		synctest.Wait()
		require.Equal(t, before+2, r.server.Arrived(), "nor does the next one wait, behind a server that is slow")
		r.server.FreezeReplies(false)
		answered()
		require.NoError(t, <-late)
		require.NoError(t, <-later)
	})
}

// Covers: E-10
func TestOverANetworkNothingWaitsForReplies(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		before, answered := crowded(t, r)
		late := r.later(bg, scripted.Echo("late"))
		synctest.Wait()
		require.Equal(t, before+1, r.server.Arrived())
		r.server.FreezeReplies(false)
		answered()
		require.NoError(t, <-late)
	})
}

// slowDecoder keeps the reader until free is closed.
type slowDecoder struct {
	*scripted.Cmd
	free chan struct{}
}

func (d slowDecoder) DecodeReply(r fdengine.Reply) error {
	<-d.free
	return d.Cmd.DecodeReply(r)
}

// Covers: E-47
func TestADecoderThatBlocksKeepsNoCommandFromTheServerForLong(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("first")))
		slow := slowDecoder{scripted.Echo("slow"), make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- r.Do(context.Background(), slow) }()
		synctest.Wait()
		before := r.server.Arrived()
		d := r.later(bg, scripted.Echo("other"))
		pass(10 * time.Millisecond)
		require.Equal(t, before+1, r.server.Arrived(), "no longer than two ticks")
		close(slow.free)
		require.NoError(t, <-done)
		require.NoError(t, <-d)
	})
}

// A refusal that broke its Stream is told in the middle of a chunk, while the reply behind it is at hand: whoever waits for
// that one, and whoever submits, does not wait for the completion.
//
// Covers: E-47
func TestACompletionOfABrokenStreamThatBlocksHoldsUpNobody(t *testing.T) {
	s := script{"a": first(1, loading)}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		free := make(chan struct{})
		a, b := scripted.Echo("a"), scripted.Echo("b")
		o := &outcomes{then: func(fdengine.Command, error) { <-free }}
		st := r.Stream()
		done := make(chan error, 1)
		r.together(func() {
			submitAll(t, st, o, a)
			synctest.Wait()
			go func() { done <- st.Do(bg, b) }()
		})
		synctest.Wait()
		_, told := o.of(a)
		require.True(t, told, "it is being told")
		select {
		case err := <-done:
			require.NoError(t, err)
		default:
			t.Fatal("the caller behind it waits")
		}
		before := r.server.Arrived()
		d := r.later(bg, scripted.Echo("other"))
		synctest.Wait()
		require.Equal(t, before+1, r.server.Arrived())
		require.NoError(t, <-d, "and replies are read")
		close(free)
	})
}

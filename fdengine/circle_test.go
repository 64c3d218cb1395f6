package fdengine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// marking is a Leaser that lends connections with their handoff mark set, as one does whose hook cannot move them.
type marking struct {
	*scripted.Leaser
	on     atomic.Bool
	leases atomic.Int64
}

func (m *marking) Lease(ctx context.Context) (*pool.Conn, error) {
	c, err := m.Leaser.Lease(ctx)
	if err == nil && m.on.Load() {
		m.leases.Add(1)
		c.MarkHandoff()
	}
	return c, err
}

// Put closes it, as a pool without a hook does.
func (m *marking) Put(c *pool.Conn) {
	if c.ShouldHandoff() {
		m.Leaser.Remove(c, nil)
		return
	}
	m.Leaser.Put(c)
}

// Every connection is to be handed off before it has carried a command: leased and put in a circle, without a pause,
// that would take a whole CPU and the log of the server.
//
// Covers: E-11
func TestConnectionsThatAreToBeHandedOffAtOnceAreNotAskedForInACircle(t *testing.T) {
	m := &marking{}
	m.on.Store(true)
	bubble(t, setup{Engine: fdengine.Options{Leaser: m}}, func(t *testing.T, r *rig) {
		m.Leaser = r.leaser
		o, a := &outcomes{}, scripted.Echo("a")
		submitAll(t, r, o, a)
		pass(5 * time.Second)
		require.Zero(t, o.count())
		require.Greater(t, m.leases.Load(), int64(1))
		require.Less(t, m.leases.Load(), int64(60), "the pause grows to a second")
		m.on.Store(false)
		pass(3 * time.Second)
		ok(t, o, a)
		require.Equal(t, 1, a.Sends)
	})
}

// Covers: E-19
func TestACallerWhoLeavesWhileARerouterHasItsCommandIsToldOnce(t *testing.T) {
	var free chan struct{}
	s := script{"m": always(scripted.Refuse("MOVED 1 b:1"))}
	o := fdengine.Options{Rerouter: rerouteFunc(func(_ error, cs []*fdengine.Carry) {
		<-free
		for _, c := range cs {
			c.Fail(errors.New("too late"))
		}
	})}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		free = make(chan struct{})
		ctx, cancel := context.WithCancel(bg)
		m := scripted.Echo("m")
		left := r.later(ctx, m)
		synctest.Wait()
		cancel()
		failsAs(t, <-left, carry.NotSent, context.Canceled)
		close(free)
		synctest.Wait()
		require.Equal(t, uint64(1), r.Stats().Settled)
		require.NoError(t, r.Do(bg, scripted.Echo("b")))
	})
}

func TestAReplyThatIsLateSaysSo(t *testing.T) {
	s := script{"a": always(scripted.Stall())}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{ReadTimeout: time.Second}}, func(t *testing.T, r *rig) {
		err := r.Do(bg, scripted.Echo("a"))
		failsAs(t, err, carry.MaybeExecuted)
		require.ErrorContains(t, err, "no reply within ReadTimeout")
	})
}

// Covers: E-8, S4-2
func TestAConnectionThatDiedIsRemovedAndNotPut(t *testing.T) {
	s := script{"n": always(scripted.DropAfter())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		failsAs(t, r.Do(bg, scripted.Echo("n")), carry.MaybeExecuted)
		pass(time.Second)
		counts := r.leaser.Counts()
		require.Equal(t, []int{1, 0, 0}, []int{counts.Removes, counts.Puts, counts.Idle})
	})
}

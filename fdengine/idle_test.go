package fdengine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// pings counts the PINGs on connection i behind the one of its handshake.
func (r *rig) pings(i int) (n int) {
	for _, req := range r.server.Requests(i) {
		if req.Verb() == "PING" {
			n++
		}
	}
	return n - 1
}

// Covers: E-15
func TestAnEngineWithoutWorkDoesNotDial(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		pass(5 * time.Minute)
		require.Zero(t, r.leaser.Counts().Leases)
		select {
		case <-r.Ready():
			t.Fatal("ready without a connection")
		default:
		}
		require.NoError(t, r.Ping(bg))
		<-r.Ready()
		require.Equal(t, 1, r.leaser.Counts().Leases)
	})
}

// Covers: E-15, E-27, S2-9
func TestAnIdleConnectionThatDiesIsNotReplacedBeforeThereIsWork(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("a")))
		r.server.CloseConns()
		synctest.Wait() // seen at once: the reader is parked on the socket
		require.Equal(t, 1, r.leaser.Counts().Removes)
		require.Equal(t, uint64(1), r.Stats().Cuts)
		pass(5 * time.Minute)
		require.Equal(t, 1, r.leaser.Counts().Leases)
		require.NoError(t, r.Do(bg, scripted.Echo("b")), "NoRetry, on a fresh connection")
		require.Equal(t, 1, r.server.Executions("b"))
	})
}

// Covers: S2-9, C42
func TestAnIdleConnectionIsPingedAndASilentPeerIsFoundBeforeTheNextCommand(t *testing.T) {
	o := fdengine.Options{PingEvery: time.Second, ReadTimeout: time.Second}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("a")))
		pass(10500 * time.Millisecond)
		require.InDelta(t, 10, r.pings(0), 2)
		require.Equal(t, uint64(1), r.Stats().Accepted, "a ping is nobody's command")
		require.Zero(t, r.Stats().InFlightCommands)
		r.conn(0).Freeze()
		pass(2500 * time.Millisecond)
		require.Equal(t, uint64(1), r.Stats().Cuts)
		require.Equal(t, 1, r.leaser.Counts().Leases, "no dial for a ping")
		start := time.Now()
		require.NoError(t, r.Do(bg, scripted.Echo("b")))
		require.Less(t, time.Since(start), 100*time.Millisecond)
	})
}

// Covers: C21
func TestNoPingGoesOutBehindASlowCommand(t *testing.T) {
	o := fdengine.Options{PingEvery: 100 * time.Millisecond, ReadTimeout: 5 * time.Second}
	s := script{"slow": always(scripted.Delay(4 * time.Second))}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("slow")))
		require.Zero(t, r.pings(0))
		require.Zero(t, r.Stats().Cuts)
	})
}

// A ping's own reply counted as use, so that an engine that pings never let an idle connection go.
//
// Covers: E-29
func TestAnIdleConnectionIsReleasedThoughItIsPinged(t *testing.T) {
	o := fdengine.Options{PingEvery: 10 * time.Second, IdleRelease: time.Minute}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("a")))
		pass(55 * time.Second)
		require.Zero(t, r.leaser.Counts().Puts)
		require.NotZero(t, r.pings(0))
		pass(10 * time.Second)
		require.Equal(t, 1, r.leaser.Counts().Puts)
		require.Zero(t, r.leaser.Counts().Removes)
		require.NoError(t, r.Do(bg, scripted.Echo("b")))
		require.Equal(t, 1, r.server.Conns(), "the same connection, leased again")
		pass(30 * time.Second)
		require.NoError(t, r.Do(bg, scripted.Echo("c")), "use puts it off")
		pass(45 * time.Second)
		require.Equal(t, 1, r.leaser.Counts().Puts)
	})
}

// Covers: E-29, S4-7
func TestMaxHoldRecyclesUnderLoadAndLosesAndDoublesNothing(t *testing.T) {
	s := scripted.Options{Script: func(*scripted.ServerConn, scripted.Request) scripted.Action {
		return scripted.Delay(3 * time.Millisecond)
	}}
	bubble(t, setup{Server: s, Engine: fdengine.Options{MaxHold: time.Second, Window: 8}}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		cs := echoes("s", 1500, carry.NoRetry)
		submitAll(t, st, o, cs...)
		require.NoError(t, st.Flush(bg))
		ok(t, o, cs...)
		require.Equal(t, tokens(cs), r.server.Order())
		counts := r.leaser.Counts()
		require.InDelta(t, 4, counts.Puts, 1)
		require.Zero(t, counts.Removes)
	})
}

// Covers: E-29
func TestAnIdleConnectionPastMaxHoldIsNotChurned(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{MaxHold: time.Second, PingEvery: -1}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("a")))
		pass(time.Hour)
		require.Equal(t, 1, r.leaser.Counts().Leases)
		require.Zero(t, r.leaser.Counts().Puts)
	})
}

// Covers: S4-2, E-29
func TestAHandoffMarkPutsTheConnectionSoonAndTheNextLeaseGoesOn(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		var lent []*pool.Conn
		grab := &grabber{Leaser: r.leaser, lent: &lent}
		e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: grab})
		require.NoError(t, err)
		require.NoError(t, e.Do(bg, scripted.Echo("a")))
		synctest.Wait()
		moved := 0
		r.leaser.OnPut = func(*pool.Conn) { moved++ }
		lent[0].MarkHandoff()
		pass(1100 * time.Millisecond)
		require.Equal(t, 1, moved, "also while idle")
		require.NoError(t, e.Close())
		<-e.Done()
	})
}

// grabber is a Leaser that shows what it lends.
type grabber struct {
	*scripted.Leaser
	lent *[]*pool.Conn
}

// Lease does not lend a connection with a handoff mark again: no hook serves the mark here.
func (g *grabber) Lease(ctx context.Context) (*pool.Conn, error) {
	c, err := g.Leaser.Lease(ctx)
	for err == nil && c.ShouldHandoff() {
		g.Leaser.Remove(c, errDown)
		c, err = g.Leaser.Lease(ctx)
	}
	if err == nil {
		*g.lent = append(*g.lent, c)
	}
	return c, err
}

// Covers: S4-7, S4-8, E-29
func TestAHandoffDuringReplayDrainsWhatWasWrittenAndReplaysOnlyTheRest(t *testing.T) {
	var lent []*pool.Conn
	s := script{"c0": first(1, scripted.DropAfter()), "c3": func(n int) scripted.Action {
		if n == 1 {
			lent[len(lent)-1].MarkHandoff() // in the middle of the replay
			return scripted.Delay(200 * time.Millisecond)
		}
		return scripted.Action{}
	}}
	bubble(t, setup{Server: s.options(), NoStart: true, Engine: fdengine.Options{Leaser: &grabber{}, Window: 4, Ping: scripted.Ping}},
		func(t *testing.T, r *rig) {
			// The rig's own engine has no usable leaser; this test makes its own.
			require.NoError(t, r.Close())
			r.listen()
			e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: &grabber{r.leaser, &lent}, Window: 4, Ping: scripted.Ping})
			require.NoError(t, err)
			o := &outcomes{}
			cs := echoes("c", 12, carry.Replay)
			require.NoError(t, e.Ping(bg))
			r.server.FreezeExec(true)
			for _, c := range cs {
				require.NoError(t, e.Submit(bg, c, o))
			}
			synctest.Wait()
			r.server.FreezeExec(false)
			pass(5 * time.Second)
			ok(t, o, cs...)
			for _, c := range cs[1:] {
				require.Equal(t, 1, r.server.Executions(c.Token), c.Token)
			}
			require.Equal(t, tokens(cs), firstTimes(r.server.Order(), "c"))
			counts := r.leaser.Counts()
			require.Equal(t, 2, counts.Removes, "the cut, and the marked one behind its Put")
			require.Equal(t, 1, counts.Puts, "the handoff")
			require.NoError(t, e.Close())
			<-e.Done()
		})
}

// Covers: S4-2, S4-14, E-8
func TestAPutHookThatFailsRemovesTheConnection(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			bad := &badPut{Leaser: r.leaser, deed: deed}
			e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: bad, IdleRelease: 30 * time.Second})
			require.NoError(t, err)
			require.NoError(t, e.Do(bg, scripted.Echo("a")))
			pass(32 * time.Second)
			require.Equal(t, 1, r.leaser.Counts().Removes)
			require.Equal(t, uint64(1), e.Stats().Panics)
			require.NoError(t, e.Do(bg, scripted.Echo("b")))
			require.Equal(t, 2, r.server.Conns())
			require.NoError(t, e.Close())
			<-e.Done()
		})
	})
}

// badPut fails before it takes the connection back.
type badPut struct {
	*scripted.Leaser
	deed func()
}

func (b *badPut) Put(*pool.Conn) { b.deed() }

// Covers: S4-14, E-11
func TestALeaserThatFailsIsADialFailure(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			r.leaser.OnLease = func(n int) error {
				if n < 4 {
					deed()
				}
				return nil
			}
			start := time.Now()
			c := scripted.Echo("a")
			require.NoError(t, r.Do(bg, c))
			require.Equal(t, 1, c.Sends)
			require.Equal(t, uint64(3), r.Stats().LeaseErrors)
			require.Less(t, time.Since(start), time.Second)
		})
	})
}

// Covers: S4-14
func TestAProtocolThatCannotBeMadeIsALeaseFailure(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		made := 0
		o := fdengine.Options{Protocol: func() fdengine.Protocol {
			if made++; made < 3 {
				deed()
			}
			return scripted.NewProtocol()
		}}
		bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Do(bg, scripted.Echo("a")))
			require.Equal(t, uint64(2), r.Stats().LeaseErrors)
			require.Equal(t, 2, r.leaser.Counts().Removes)
		})
	})
}

// Covers: S4-14
func TestAPingThatCannotBeMadeIsNotTriedInACircle(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		o := fdengine.Options{PingEvery: time.Second, Ping: func() fdengine.Command { deed(); return nil }}
		bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Do(bg, scripted.Echo("a")))
			pass(10 * time.Second)
			require.InDelta(t, 9, float64(r.Stats().Panics), 2)
			require.NoError(t, r.Do(bg, scripted.Echo("b")))
		})
	})
}

var errDown = errors.New("down")

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
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// spill lends from the first that can.
type spill struct {
	pools []pool.Leaser
	owner map[*pool.Conn]pool.Leaser // the engine has one lease at a time: no lock
}

func (s *spill) Lease(ctx context.Context) (c *pool.Conn, err error) {
	for _, p := range s.pools {
		if c, err = p.Lease(ctx); err == nil {
			s.owner[c] = p
			return c, nil
		}
	}
	return nil, err
}

func (s *spill) Put(c *pool.Conn)               { s.owner[c].Put(c) }
func (s *spill) Remove(c *pool.Conn, why error) { s.owner[c].Remove(c, why) }

// Covers: E-28, S4-1
func TestTheEngineRunsOnALeaserThatSpills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newRig(t, setup{OnDial: func(n int, _, _ *memnet.Conn) error {
			if n == 1 {
				return memnet.ErrBlackHole
			}
			return nil
		}}), newRig(t, setup{})
		slow := first.leaser.DialFunc
		first.leaser.DialFunc = func(ctx context.Context) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return slow(ctx)
		}
		first.leaser.OnLease = func(n int) error {
			if n == 2 {
				return pool.ErrFull
			}
			return nil
		}
		e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol,
			Leaser: &spill{[]pool.Leaser{first.leaser, second.leaser}, map[*pool.Conn]pool.Leaser{}}})
		require.NoError(t, err)
		d := took(func() { require.NoError(t, e.Do(bg, scripted.Echo("a"))) })
		require.Equal(t, time.Second, d, "the dial timeout of the first")
		second.server.CloseConns()
		synctest.Wait()
		require.NoError(t, e.Do(bg, scripted.Echo("b")))
		second.server.CloseConns()
		synctest.Wait()
		require.NoError(t, e.Do(bg, scripted.Echo("c")))
		require.Equal(t, []string{"a", "b"}, second.server.Order())
		require.Equal(t, []string{"c"}, first.server.Order())
		require.NoError(t, e.Close())
		<-e.Done()
		first.finish()
		second.finish()
	})
}

// Covers: E-8, S4-2, S4-4
func TestADeathByTimeoutIsTheReasonOfTheRemoveBeforeTheNextLease(t *testing.T) {
	s := script{"p": first(1, scripted.Mute())}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{ReadTimeout: time.Second}}, func(t *testing.T, r *rig) {
		r.leaser.OnLease = func(n int) error {
			if n == 2 {
				reasons := r.leaser.Reasons()
				require.Len(t, reasons, 1)
				var ne net.Error
				require.ErrorAs(t, reasons[0], &ne)
				require.True(t, ne.Timeout(), "what the fence of the next handshake asks for")
			}
			return nil
		}
		require.NoError(t, r.Do(bg, scripted.ReplayEcho("p")))
		require.Equal(t, 2, r.leaser.Counts().Leases)
	})
}

// Covers: S4-18, E-33
func TestAHookThatBlocksDoesNotHoldBackAnOutcome(t *testing.T) {
	free := make(chan struct{})
	obs := &events{}
	bubble(t, setup{Engine: fdengine.Options{Observer: obs}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		synctest.Wait()
		free = make(chan struct{})
		obs.then = func(ev fdengine.Event) {
			if ev.Kind == fdengine.EventCompleted {
				<-free
			}
		}
		require.Zero(t, took(func() { require.NoError(t, r.Do(bg, scripted.Echo("a"))) }))
		close(free)
	})
	_ = free
}

// Covers: E-2, E-18
func TestARedirectInsideAStreamIsTheAnswerAndTheGap(t *testing.T) {
	s := script{"a": always(scripted.Refuse("MOVED 7 b:1"))}
	twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
		st, o := p.a.Stream(), &outcomes{}
		a, b, c := scripted.ReplayEcho("a"), scripted.ReplayEcho("b"), scripted.ReplayEcho("c")
		p.a.together(func() { submitAll(t, st, o, a, b) })
		synctest.Wait()
		failed(t, o, a, carry.Answered)
		failsAs(t, st.Submit(bg, c, o), carry.NotSent, fdengine.ErrStreamBroken)
		require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
		require.Zero(t, p.b.server.Executed(), "it did not move")
		require.Zero(t, p.a.server.Executions("a"))
	})
}

// Covers: E-2, S4-4
func TestAfterACutTheRecordsOfAStreamStayWithTheirEngine(t *testing.T) {
	s := script{"a": first(1, scripted.DropAfter())}
	twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
		st, o := p.a.Stream(), &outcomes{}
		a, b, x := scripted.ReplayEcho("a"), scripted.ReplayEcho("b"), scripted.ReplayEcho("x")
		p.a.together(func() {
			submitAll(t, st, o, a, b)
			submitAll(t, p.a, o, x)
		})
		pass(3 * time.Second)
		ok(t, o, a, b, x)
		require.Equal(t, []string{"a", "a", "b"}, p.a.server.Order())
		require.Equal(t, []string{"x"}, p.b.server.Order())
	})
}

// Covers: S2-19, E-3
func TestNoBackoffAndNoCompletionStopsTheReader(t *testing.T) {
	s := script{"l": first(3, scripted.Refuse("LOADING retry=1000"))}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		l := r.later(bg, scripted.Echo("l"))
		synctest.Wait()
		for _, c := range echoes("c", 20, carry.NoRetry) {
			require.Zero(t, took(func() { require.NoError(t, r.Do(bg, c)) }))
		}
		require.NoError(t, <-l)
	})
}

// Covers: S0-7
func TestAConnectionThatDiesReleasesEveryWaiter(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeExec(true)
		var waiters []<-chan error
		for _, c := range echoes("c", 100, carry.NoRetry) {
			waiters = append(waiters, r.later(bg, c))
		}
		synctest.Wait()
		r.server.ResetConns()
		within(t, time.Second, func() {
			for _, w := range waiters {
				failsAs(t, <-w, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
			}
		})
		r.server.FreezeExec(false)
	})
}

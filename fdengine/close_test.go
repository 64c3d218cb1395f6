package fdengine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// shutdown is Shutdown with a bound.
func (r *rig) shutdown(d time.Duration) (fdengine.Report, error) {
	ctx, cancel := context.WithTimeout(bg, d)
	defer cancel()
	return r.Shutdown(ctx)
}

// Covers: C24, E-13
func TestShutdownEndsWithAFullWindowAndASilentServer(t *testing.T) {
	o := fdengine.Options{Window: 10, Queue: 10, ReadTimeout: -1}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeExec(true)
		oc := &outcomes{}
		cs := echoes("c", 20, carry.NoRetry)
		submitAll(t, r, oc, cs...)
		waiting := r.later(bg, scripted.Echo("waiting"))
		synctest.Wait()
		var rep fdengine.Report
		var err error
		d := took(func() { rep, err = r.shutdown(time.Second) })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, d, 1200*time.Millisecond)
		failsAs(t, <-waiting, carry.NotSent, fdengine.ErrClosed)
		<-r.Done()
		for _, c := range cs[:10] {
			failed(t, oc, c, carry.MaybeExecuted, fdengine.ErrClosed)
		}
		for _, c := range cs[10:] {
			failed(t, oc, c, carry.NotSent, fdengine.ErrClosed)
		}
		require.Equal(t, fdengine.Report{NotSent: 10, MaybeExecuted: 10}, rep)
		require.Zero(t, r.net.Open(), "the server sees the end")
	})
}

// Covers: C24
func TestShutdownAndCloseEndWhileTheWriterIsBlocked(t *testing.T) {
	for _, how := range []string{"shutdown", "close"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, setup{Engine: fdengine.Options{WriteTimeout: -1, ReadTimeout: -1}}, func(t *testing.T, r *rig) {
				require.NoError(t, r.Ping(bg))
				r.server.FreezeReads(true)
				oc := &outcomes{}
				c := &scripted.Cmd{Token: "c", Args: []string{strings.Repeat("x", 1<<20)}}
				d := scripted.Echo("d")
				submitAll(t, r, oc, c, d)
				synctest.Wait()
				if how == "close" {
					require.Zero(t, took(func() { require.NoError(t, r.Close()) }))
				} else {
					_, err := r.shutdown(time.Second)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				<-r.Done()
				require.Equal(t, 2, oc.count())
				failed(t, oc, d, carry.NotSent, fdengine.ErrClosed)
				r.server.FreezeReads(false)
			})
		})
	}
}

// Covers: C24, E-20, E-4
func TestShutdownWritesAndDrainsWhatWasAccepted(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		cs := echoes("c", 1000, carry.NoRetry)
		submitAll(t, r, oc, cs...)
		before := r.Stats().Settled
		rep, err := r.shutdown(5 * time.Second)
		require.NoError(t, err)
		<-r.Done()
		ok(t, oc, cs...)
		require.Equal(t, tokens(cs), r.server.Order())
		require.LessOrEqual(t, uint64(rep.Answered), 1000-before)
		require.Zero(t, rep.NotSent+rep.MaybeExecuted)
		require.Equal(t, 1, r.leaser.Counts().Puts, "a clean end")
		require.Zero(t, r.leaser.Counts().Removes)
	})
}

// Covers: C24
func TestTheReportCountsOnlyWhatWasUnsettled(t *testing.T) {
	s := script{"slow": always(scripted.Delay(time.Second)), "gone": always(scripted.DropAfter())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		for _, c := range echoes("c", 50, carry.NoRetry) {
			require.NoError(t, r.Do(bg, c))
		}
		oc := &outcomes{}
		slow, gone := scripted.Echo("slow"), scripted.Echo("gone")
		again := scripted.ReplayEcho("again")
		r.together(func() { submitAll(t, r, oc, slow, gone, again) })
		rep, err := r.shutdown(10 * time.Second)
		require.NoError(t, err)
		require.Equal(t, fdengine.Report{Answered: 2, MaybeExecuted: 1}, rep)
		ok(t, oc, slow, again)
	})
}

// Covers: C24, E-41
func TestCloseWhileReconnectingSettlesByFateAndDialsNoMore(t *testing.T) {
	s := script{"p": always(scripted.DropAfter())}
	bubble(t, setup{Server: s.options(), OnDial: func(n int, _, _ *memnet.Conn) error {
		if n > 1 {
			return memnet.ErrBlackHole
		}
		return nil
	}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		oc := &outcomes{}
		p, q := scripted.ReplayEcho("p"), scripted.ReplayEcho("q")
		submitAll(t, r, oc, p)
		pass(2 * time.Second)
		submitAll(t, r, oc, q)
		require.Zero(t, took(func() { require.NoError(t, r.Close()) }))
		<-r.Done()
		failed(t, oc, p, carry.MaybeExecuted, fdengine.ErrClosed)
		failed(t, oc, q, carry.NotSent, fdengine.ErrClosed)
		dials := r.net.Dials()
		pass(time.Minute)
		require.Equal(t, dials, r.net.Dials())
	})
}

// Covers: C24
func TestShutdownMayDialToDrain(t *testing.T) {
	bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		cs := echoes("c", 10, carry.NoRetry)
		submitAll(t, r, oc, cs...)
		pass(300 * time.Millisecond)
		time.AfterFunc(500*time.Millisecond, r.listen)
		rep, err := r.shutdown(5 * time.Second)
		require.NoError(t, err)
		require.Equal(t, fdengine.Report{Answered: 10}, rep)
		ok(t, oc, cs...)
		failsAs(t, r.Do(bg, scripted.Echo("x")), carry.NotSent, fdengine.ErrClosed)
		<-r.Done()
	})
}

// Covers: C24
func TestShutdownOfAnEngineThatCannotConnectEndsWithItsContext(t *testing.T) {
	bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		submitAll(t, r, oc, scripted.Echo("c"))
		rep, err := r.shutdown(time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, fdengine.Report{NotSent: 1}, rep)
	})
}

// Covers: C24, E-20
func TestCloseAndShutdownMayComeTwiceAndAtOnce(t *testing.T) {
	s := script{"slow": always(scripted.Delay(time.Second))}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		slow := scripted.Echo("slow")
		submitAll(t, r, oc, slow)
		synctest.Wait()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				rep, err := r.shutdown(5 * time.Second)
				require.NoError(t, err)
				require.Equal(t, fdengine.Report{Answered: 1}, rep)
			})
		}
		wg.Wait()
		ok(t, oc, slow)
		for range 10 {
			wg.Go(func() { require.NoError(t, r.Close()) })
		}
		wg.Wait()
		rep, err := r.shutdown(time.Second)
		require.NoError(t, err)
		require.Zero(t, rep)
		failsAs(t, r.Do(bg, slow), carry.NotSent, fdengine.ErrClosed)
		failsAs(t, r.TrySubmit(slow, oc), carry.NotSent, fdengine.ErrClosed)
		failsAs(t, r.DoBatch(bg, []fdengine.Command{slow}, nil), carry.NotSent, fdengine.ErrClosed)
		failsAs(t, r.Ping(bg), carry.NotSent, fdengine.ErrClosed)
		require.Equal(t, 1, r.leaser.Counts().Puts)
	})
}

// Covers: E-14, E-4, E-13, A-7
func TestASubmitThatRacesCloseCompletesOrIsRejected(t *testing.T) {
	for round := range 30 {
		bubble(t, setup{Engine: fdengine.Options{Window: 4, Queue: 4}}, func(t *testing.T, r *rig) {
			oc := &outcomes{}
			var wg sync.WaitGroup
			var mu sync.Mutex
			accepted := 0
			for g := range 8 {
				wg.Go(func() {
					for i := range 20 {
						c := scripted.Echo(fmt.Sprintf("t%d-%d", g, i))
						if i%2 == 0 {
							if r.Submit(bg, c, oc) == nil {
								mu.Lock()
								accepted++
								mu.Unlock()
							}
						} else if err := r.Do(bg, c); err != nil {
							require.ErrorIs(t, err, fdengine.ErrClosed)
						}
					}
				})
			}
			wg.Go(func() {
				require.NoError(t, r.server.Until(bg, func() bool { return r.server.Executed() >= round }))
				require.NoError(t, r.Close())
			})
			wg.Wait()
			<-r.Done()
			require.Equal(t, accepted, oc.count())
			r.even()
		})
	}
}

// Covers: E-14, C24
func TestThoseWhoWaitForRoomAreTurnedAwayWhenShutdownBegins(t *testing.T) {
	s := script{"slow": always(scripted.Delay(2 * time.Second))}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Window: 1, Queue: 1}}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		submitAll(t, r, oc, scripted.Echo("slow"), scripted.Echo("queued"))
		waiting := r.later(bg, scripted.Echo("waiting"))
		synctest.Wait()
		down := make(chan error, 1)
		go func() {
			_, err := r.shutdown(10 * time.Second)
			down <- err
		}()
		synctest.Wait()
		select {
		case err := <-waiting:
			failsAs(t, err, carry.NotSent, fdengine.ErrClosed)
		default:
			t.Fatal("it waits for room that will not be given")
		}
		require.NoError(t, <-down)
		require.Equal(t, 2, oc.count())
		require.Zero(t, r.server.Executions("waiting"))
	})
}

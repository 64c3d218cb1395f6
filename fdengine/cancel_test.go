package fdengine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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

// later runs Do on a goroutine of its own; the result is there when the channel is.
func (r *rig) later(ctx context.Context, c fdengine.Command) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.Do(ctx, c) }()
	return done
}

// Covers: E-19
func TestAContextIsHonouredWhereverTheCommandIs(t *testing.T) {
	t.Run("ended before", func(t *testing.T) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(bg)
			cancel()
			c := scripted.Echo("c")
			failsAs(t, r.Do(ctx, c), carry.NotSent, context.Canceled, fdengine.ErrNotSent)
			failsAs(t, r.Submit(ctx, c, &outcomes{}), carry.NotSent, context.Canceled)
			require.Zero(t, c.Encodes)
			pass(time.Second)
			require.Zero(t, r.server.Conns())
		})
	})
	t.Run("waiting for room", func(t *testing.T) {
		bubble(t, setup{NoStart: true, Engine: fdengine.Options{Window: 1, Queue: 1}}, func(t *testing.T, r *rig) {
			o := &outcomes{}
			submitAll(t, r, o, echoes("c", 2, carry.NoRetry)...)
			ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
			defer cancel()
			d := took(func() {
				failsAs(t, r.Do(ctx, scripted.Echo("x")), carry.NotSent, context.DeadlineExceeded, fdengine.ErrNotSent)
			})
			require.Equal(t, 100*time.Millisecond, d)
			require.Equal(t, uint64(2), r.Stats().Accepted)
			require.Equal(t, uint64(1), r.Stats().Rejected)
		})
	})
	t.Run("queued without a connection", func(t *testing.T) {
		bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(bg)
			res := r.later(ctx, scripted.Echo("x"))
			synctest.Wait()
			cancel()
			failsAs(t, <-res, carry.NotSent, context.Canceled)
			r.listen()
			require.NoError(t, r.Do(bg, scripted.Echo("y")))
			require.Equal(t, []string{"y"}, r.server.Order())
		})
	})
	t.Run("queued behind a full window", func(t *testing.T) {
		s := script{"a": always(scripted.Delay(time.Second))}
		bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Window: 1}}, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(bg)
			a := r.later(bg, scripted.Echo("a"))
			synctest.Wait()
			x := r.later(ctx, scripted.Echo("x"))
			synctest.Wait()
			cancel()
			failsAs(t, <-x, carry.NotSent, context.Canceled)
			require.NoError(t, <-a)
			pass(time.Second)
			require.Zero(t, r.server.Executions("x"))
		})
	})
}

// Covers: E-19, E-24
func TestAnOutageIsBoundedByTheCallersContext(t *testing.T) {
	for name, dial := range map[string]func(int, *memnet.Conn, *memnet.Conn) error{
		"refused":    nil,
		"black hole": func(int, *memnet.Conn, *memnet.Conn) error { return memnet.ErrBlackHole },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{NoStart: true, OnDial: dial}, func(t *testing.T, r *rig) {
				ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
				defer cancel()
				d := took(func() { failsAs(t, r.Do(ctx, scripted.Echo("x")), carry.NotSent, context.DeadlineExceeded) })
				require.LessOrEqual(t, d, 300*time.Millisecond)
			})
		})
	}
}

// Covers: C01, E-19
func TestAReplyOfACallerWhoLeftReachesNobody(t *testing.T) {
	s := scripted.Options{Script: func(*scripted.ServerConn, scripted.Request) scripted.Action {
		return scripted.Delay(100 * time.Millisecond)
	}}
	bubble(t, setup{Server: s}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		t1, t2, t3 := scripted.Echo("t1"), scripted.Echo("t2"), scripted.Echo("t3")
		failsAs(t, r.Do(ctx, t1), carry.MaybeExecuted, context.DeadlineExceeded, fdengine.ErrMaybeExecuted)
		require.NoError(t, r.Do(bg, t2))
		require.NoError(t, r.Do(bg, t3))
		require.Equal(t, []string{"t2", "t3"}, []string{t2.Reply, t3.Reply})
		require.Zero(t, t1.Decodes)
		require.Equal(t, 1, r.server.Conns(), "the connection lives")
	})
}

// Covers: C01, E-4, A-7
func TestCancelsAtAnyMomentNeverShiftTheReplies(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := scripted.Options{Script: func(*scripted.ServerConn, scripted.Request) scripted.Action {
		return scripted.Delay(time.Duration(rng.IntN(4)) * time.Millisecond)
	}}
	bubble(t, setup{Server: s}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		for g := range 32 {
			wait := rand.New(rand.NewPCG(7, uint64(g)))
			wg.Go(func() {
				for i := range 30 {
					c := scripted.Echo(fmt.Sprintf("t%d-%d", g, i))
					ctx, cancel := context.WithTimeout(bg, time.Duration(wait.IntN(120))*time.Millisecond)
					err := r.Do(ctx, c)
					cancel()
					if err == nil {
						require.Equal(t, c.Token, c.Reply)
					} else {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						require.Zero(t, c.Decodes)
					}
				}
			})
		}
		wg.Wait()
		pass(5 * time.Second)
		r.even()
		require.Zero(t, r.Stats().Cuts)
		for token, n := range r.server.AllExecutions() {
			require.Equal(t, 1, n, token)
		}
	})
}

// Covers: E-19
func TestANotSentCancelIsNeverExecuted(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		for g := range 400 {
			wg.Go(func() {
				c := scripted.Echo(fmt.Sprint("t", g))
				ctx, cancel := context.WithCancel(bg)
				go cancel()
				err := r.Do(ctx, c)
				if err != nil && fdengine.FateOf(err) == carry.NotSent {
					pass2(time.Second)
					require.Zero(t, r.server.Executions(c.Token), c.Token)
				}
			})
		}
		wg.Wait()
	})
}

// pass2 is pass for goroutines that are not the bubble's main one.
func pass2(d time.Duration) { <-time.After(d) }

// Covers: E-42
func TestACancelRacingTheDecoderLeavesTheCommandToItsCaller(t *testing.T) {
	server, addr, err := scripted.ListenTCP(scripted.Options{})
	require.NoError(t, err)
	defer server.Close()
	leaser := scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	})
	defer leaser.Close()
	e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: leaser})
	require.NoError(t, err)
	var wg sync.WaitGroup
	var left, answered sync.Map
	for g := range 8 {
		wg.Go(func() {
			for i := range 1250 {
				c := scripted.Echo(fmt.Sprintf("t%d-%d", g, i))
				ctx, cancel := context.WithCancel(bg)
				if i%4 > 0 {
					go cancel()
				}
				err := e.Do(ctx, c)
				cancel()
				c.Decodes, c.Reply, c.Raw = c.Decodes+1, "mine", "mine" // the race detector is the judge
				if err == nil {
					answered.Store(c, true)
				} else {
					left.Store(c, true)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, e.Close())
	<-e.Done()
	n := 0
	for _, m := range []*sync.Map{&left, &answered} {
		m.Range(func(k, _ any) bool { n++; require.Equal(t, "mine", k.(*scripted.Cmd).Reply); return true })
	}
	require.Equal(t, 10_000, n)
	s := e.Stats()
	require.Equal(t, s.Accepted, s.Settled)
}

// Covers: E-42
func TestACallerWhoLeavesWhileItsReplyIsDecodedGetsTheResult(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(bg)
		c := scripted.Echo("c")
		c.OnDecode = func(fdengine.Reply) {
			cancel()
			pass2(time.Second) // CPU work, in truth
		}
		d := took(func() { require.NoError(t, r.Do(ctx, c)) })
		require.Equal(t, time.Second, d)
		require.Equal(t, "c", c.Reply)
	})
}

// Covers: E-19, E-43, C19
func TestWhatWasCancelledWhileTheServerWasDownIsNotSent(t *testing.T) {
	bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
		const n = 4000
		ctx, cancel := context.WithCancel(bg)
		o := &outcomes{}
		var want []string
		var wg sync.WaitGroup
		for i := range n {
			c := scripted.Echo(fmt.Sprint("c", i))
			if i%2 == 0 {
				want = append(want, c.Token)
				submitAll(t, r, o, c)
				continue
			}
			wg.Go(func() { failsAs(t, r.Do(ctx, c), carry.NotSent, context.Canceled) })
			if i%64 == 1 {
				synctest.Wait() // mixed in with the others
			}
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		r.listen()
		pass(5 * time.Second)
		require.Equal(t, want, r.server.Order())
	})
}

// Covers: C19, E-41
func TestADeadlineThatPassesDuringAnOutageIsTheEnd(t *testing.T) {
	drop := script{"b": always(scripted.DropAfter())}
	bubble(t, setup{Server: drop.options()}, func(t *testing.T, r *rig) {
		up := true
		r.leaser.OnLease = func(int) error {
			if up {
				return nil
			}
			return errDown
		}
		require.NoError(t, r.Ping(bg))
		synctest.Wait()
		up = false
		o := &outcomes{}
		b := scripted.ReplayEcho("b")
		b.Traits.Timeout = 100 * time.Millisecond
		x := scripted.Echo("x")
		ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
		defer cancel()
		submitAll(t, r, o, b)
		pass(10 * time.Millisecond)
		require.NoError(t, r.Submit(ctx, x, o))
		pass(300 * time.Millisecond)
		failed(t, o, x, carry.NotSent, context.DeadlineExceeded, fdengine.ErrTimeout)
		failed(t, o, b, carry.MaybeExecuted, context.DeadlineExceeded, fdengine.ErrTimeout)
		up = true
		y := scripted.Echo("y")
		require.NoError(t, r.Do(bg, y))
		pass(time.Second)
		require.Equal(t, []string{"b", "y"}, r.server.Order())
	})
}

// Covers: E-41
func TestACommandThatWaitsAgainKeepsItsFate(t *testing.T) {
	for _, how := range []string{"cancel", "timeout", "close", "outage"} {
		t.Run(how, func(t *testing.T) {
			s := script{"a": always(scripted.DropAfter())}
			bubble(t, setup{Server: s.options(), Engine: fdengine.Options{MaxOutage: time.Second}}, func(t *testing.T, r *rig) {
				require.NoError(t, r.Ping(bg))
				synctest.Wait()
				r.leaser.OnLease = func(int) error { return errors.New("down") }
				a, q := scripted.ReplayEcho("a"), scripted.ReplayEcho("q")
				if how == "timeout" {
					a.Traits.Timeout = 500 * time.Millisecond
					q.Traits.Timeout = 500 * time.Millisecond
				}
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				ra := r.later(ctx, a)
				pass(50 * time.Millisecond)
				rq := r.later(ctx, q)
				pass(50 * time.Millisecond)
				class := map[string]error{"cancel": context.Canceled, "timeout": fdengine.ErrTimeout,
					"close": fdengine.ErrClosed, "outage": fdengine.ErrUnavailable}[how]
				switch how {
				case "cancel":
					cancel()
				case "close":
					require.NoError(t, r.Close())
				}
				ea, eq := <-ra, <-rq
				failsAs(t, ea, carry.MaybeExecuted, class, fdengine.ErrMaybeExecuted)
				failsAs(t, eq, carry.NotSent, class, fdengine.ErrNotSent)
				var ce *fdengine.CallError
				require.ErrorAs(t, ea, &ce)
				require.Equal(t, 1, ce.Sends)
			})
		})
	}
}

package fdengine_test

import (
	"context"
	"errors"
	"log/slog"
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
	"github.com/fdengine/fullduplex/pool"
)

// The second half of the panic table: see panic_table_test.go.

// unwilling is a Leaser that fails when it takes a connection back, behind the pool's own doing or before it.
type unwilling struct {
	*pool.Pool
	put, remove func(give func())
}

func (u *unwilling) Put(c *pool.Conn) {
	if give := func() { u.Pool.Put(c) }; u.put != nil {
		u.put(give)
	} else {
		give()
	}
}

func (u *unwilling) Remove(c *pool.Conn, why error) {
	if give := func() { u.Pool.Remove(c, why) }; u.remove != nil {
		u.remove(give)
	} else {
		give()
	}
}

// Covers: S4-2, S4-14, E-8
func TestALeaserThatFailsToTakeBackCostsTheConnectionOnly(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		for _, when := range []string{"put before", "put after", "remove before", "remove after"} {
			t.Run(when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem := &memnet.Network{}
					server := scripted.New(script{"d": first(1, scripted.DropAfter())}.options())
					l, err := mem.Listen("server")
					require.NoError(t, err)
					server.Serve(l)
					p, err := pool.New(pool.Options{Addr: "server:1", DialFunc: func(ctx context.Context, n, _ string) (net.Conn, error) {
						return mem.Dial(ctx, n, "server")
					}})
					require.NoError(t, err)
					u := &unwilling{Pool: p}
					arm, fail := once(deed)
					hook := func(give func()) {
						if when[len(when)-5:] == "after" {
							give()
						}
						fail()
						if when[len(when)-5:] != "after" {
							give()
						}
					}
					if when[:3] == "put" {
						u.put = hook
					} else {
						u.remove = hook
					}
					e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: u, IdleRelease: 30 * time.Second})
					require.NoError(t, err)
					require.NoError(t, e.Do(bg, scripted.Echo("a")))
					arm()
					if when[:3] == "put" {
						pass(40 * time.Second)
					} else {
						require.NoError(t, e.Do(bg, scripted.ReplayEcho("d")))
					}
					require.Equal(t, uint64(1), e.Stats().Panics)
					b := scripted.Echo("b")
					require.NoError(t, e.Do(bg, b))
					require.Equal(t, 1, b.Sends)
					require.Equal(t, 2, server.Conns(), "the one that failed is not used again")
					require.NoError(t, e.Close())
					<-e.Done()
					require.NoError(t, p.Close())
					<-p.Done()
					require.NoError(t, server.Close())
				})
			})
		}
	})
}

// Covers: S4-14, E-7
func TestACompletionThatFailsWhereverItIsToldLeavesTheOutcomesOfOthers(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		fails := func(token byte) *outcomes {
			return &outcomes{then: func(cmd fdengine.Command, _ error) {
				if cmd.(*scripted.Cmd).Token[0] == token {
					deed()
				}
			}}
		}
		why := errors.New("nowhere to go")
		t.Run("a failed carry", func(t *testing.T) {
			s := script{"m1": always(scripted.Refuse("MOVED 1 b:1")), "m2": always(scripted.Refuse("MOVED 1 b:1"))}
			o := setup{Server: s.options(), Engine: fdengine.Options{Rerouter: rerouteFunc(func(_ error, cs []*fdengine.Carry) {
				for _, c := range cs {
					c.Fail(why)
				}
			})}}
			bubble(t, o, func(t *testing.T, r *rig) {
				o, m1, m2, b := fails('m'), scripted.Echo("m1"), scripted.Echo("m2"), scripted.Echo("b")
				r.together(func() { submitAll(t, r, o, m1, b, m2) })
				pass(time.Second)
				failed(t, o, m1, carry.NotSent, why)
				failed(t, o, m2, carry.NotSent, why)
				ok(t, o, b)
				require.Equal(t, uint64(2), r.Stats().Panics)
			})
		})
		t.Run("a denial", func(t *testing.T) {
			lim := &limiter{}
			bubble(t, setup{Engine: fdengine.Options{Limiter: lim}}, func(t *testing.T, r *rig) {
				o, x, y := fails('x'), scripted.Echo("x1"), scripted.Echo("x2")
				lim.deny(why)
				submitAll(t, r, o, x, y)
				pass(time.Second)
				lim.deny(nil)
				failed(t, o, x, carry.NotSent, fdengine.ErrDenied, why)
				failed(t, o, y, carry.NotSent, fdengine.ErrDenied, why)
				require.NoError(t, r.Do(bg, scripted.Echo("after")))
			})
		})
		t.Run("a break by withdrawal", func(t *testing.T) {
			s := script{"a": first(1, scripted.DropAfter())}
			bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
				st, o, x, y := r.Stream(), fails('x'), scripted.ReplayEcho("x1"), scripted.ReplayEcho("x2")
				ctx, cancel := context.WithCancel(bg)
				var left error
				r.together(func() {
					go func() { left = st.Do(ctx, scripted.ReplayEcho("a")) }()
					synctest.Wait()
					submitAll(t, st, o, x, y)
					r.leaser.OnLease = func(int) error { return errors.New("down") }
				})
				synctest.Wait() // the connection is gone and there is no other one
				cancel()
				pass(time.Second)
				failsAs(t, left, carry.MaybeExecuted, context.Canceled)
				failed(t, o, x, carry.MaybeExecuted, fdengine.ErrStreamBroken)
				failed(t, o, y, carry.MaybeExecuted, fdengine.ErrStreamBroken)
				require.Equal(t, uint64(2), r.Stats().Panics)
				within(t, time.Second, func() { require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken) })
			})
		})
		t.Run("sent without reply", func(t *testing.T) {
			s := script{"x1": always(scripted.Action{NoReply: true})}
			bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
				o, x, b := fails('x'), scripted.Echo("x1"), scripted.Echo("b")
				x.Traits.Frames = fdengine.NoReply
				submitAll(t, r, o, x, b)
				pass(time.Second)
				require.NoError(t, settledOf(t, o, x))
				ok(t, o, b)
				require.Equal(t, 1, r.server.Executions("x1"))
				require.Equal(t, 1, r.server.Conns())
			})
		})
	})
}

// logged is a slog.Handler that runs then for each record.
type logged struct{ then func(slog.Record) }

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.then(r)
	return nil
}
func (l *logged) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logged) WithGroup(string) slog.Handler      { return l }

// Covers: S4-14, E-7
func TestALoggerThatFailsIsCountedAndHarmsNobody(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		var mu sync.Mutex
		heard := map[string]int{}
		logger := slog.New(&logged{then: func(r slog.Record) {
			mu.Lock()
			heard[r.Message]++
			mu.Unlock()
			deed()
		}})
		s := script{"d": first(1, scripted.DropAfter())}
		bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Logger: logger}}, func(t *testing.T, r *rig) {
			r.leaser.OnLease = func(n int) error {
				if n == 1 {
					return errors.New("down")
				}
				return nil
			}
			o := &outcomes{then: func(cmd fdengine.Command, _ error) {
				if cmd.(*scripted.Cmd).Token == "c" {
					panic("boom")
				}
			}}
			d, c, p := scripted.ReplayEcho("d"), scripted.Echo("c"), scripted.Echo("p")
			p.DecodePanic = "boom"
			submitAll(t, r, o, d)
			pass(2 * time.Second)
			submitAll(t, r, o, c, p)
			pass(2 * time.Second)
			ok(t, o, d, c)
			failed(t, o, p, carry.Answered)
			for _, what := range []string{"lease failed", "session ended: cut", "session ended: retire", "caught"} {
				require.Positive(t, heard[what], what)
			}
			require.NoError(t, r.Do(bg, scripted.Echo("after")))
		})
	})
}

// Covers: E-17, S4-14
func TestALimiterThatFailsWhileOthersAreInFlightCostsOnlyItsClaim(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		arm, ask := once(deed)
		lim := &limiter{onAllow: ask}
		s := script{"slow": always(scripted.Delay(time.Second))}
		bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Limiter: lim}}, func(t *testing.T, r *rig) {
			o, slow, x, y := &outcomes{}, scripted.Echo("slow"), scripted.ReplayEcho("x"), scripted.Echo("y")
			submitAll(t, r, o, slow)
			synctest.Wait()
			arm()
			submitAll(t, r, o, x)
			synctest.Wait()
			fallen(t, o, x, "Allow", carry.NotSent)
			require.ErrorIs(t, settledOf(t, o, x), fdengine.ErrDenied)
			submitAll(t, r, o, y)
			pass(2 * time.Second)
			ok(t, o, slow, y)
			require.Equal(t, 1, r.server.Conns())
			require.Zero(t, r.server.Executions("x"))
			allowed, _, fine, bad := lim.counts()
			require.Equal(t, allowed, fine+bad, "one report per claim that was allowed")
		})
	})
}

// A Rerouter gives some carries to another engine and fails then: those are where they are, only the rest ends.
//
// Covers: S4-14
func TestARerouterThatFailsHalfWayEndsOnlyWhatItHasNotGivenAway(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		for _, given := range []int{1, 3} {
			s := script{"d": first(1, scripted.DropAfter())}
			twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
				p.set(func(_ error, cs []*fdengine.Carry) {
					p.b.Adopt(cs[:given]...)
					deed()
				})
				o, d, q, z := &outcomes{}, scripted.ReplayEcho("d"), scripted.ReplayEcho("q"), scripted.ReplayEcho("z")
				p.a.together(func() { submitAll(t, p.a, o, d, q, z) })
				pass(2 * time.Second)
				all := []*scripted.Cmd{d, q, z}
				ok(t, o, all[:given]...)
				for _, c := range all[given:] {
					fallen(t, o, c, "Reroute", carry.MaybeExecuted)
				}
				require.Equal(t, tokens(all[:given]), p.b.server.Order())
				require.Equal(t, uint64(1), p.a.Stats().Panics)
				require.NoError(t, p.a.Do(bg, scripted.Echo("after")))
			})
		}
	})
}

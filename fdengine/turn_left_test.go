package fdengine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// What is to happen on the engine goroutine happens there, before anything is written, though it is the reader's turn.
//
// Covers: E-23, E-29, E-25
func TestWhatIsOutOfTheOrdinaryIsLeftToTheEngineGoroutine(t *testing.T) {
	withSlow := func(s script) scripted.Options {
		s["slow"] = always(scripted.Delay(2 * time.Millisecond))
		return s.options()
	}
	for name, c := range map[string]struct {
		server  script
		engine  fdengine.Options
		spend   time.Duration // on the connection before the chain begins
		then    func(conn *pool.Conn)
		conns   int
		granted int
		turn    bool // the engine goroutine has done its part before: the reader writes
	}{
		"handoff":  {then: (*pool.Conn).MarkHandoff, conns: 2, granted: 3},
		"max hold": {engine: fdengine.Options{MaxHold: time.Second}, spend: time.Second - 3*time.Millisecond, conns: 1, granted: 2},
		"due":      {server: script{"chained3": first(1, scripted.Refuse("LOADING retry=1"))}, conns: 1, granted: 1, turn: true},
	} {
		t.Run(name, func(t *testing.T) {
			var lent []*pool.Conn
			grab := &grabber{lent: &lent}
			c.engine.Leaser = grab
			if c.server == nil {
				c.server = script{}
			}
			turnBubble(t, setup{Server: withSlow(c.server), Engine: c.engine}, func(t *testing.T, r *rig, l *turns) {
				grab.Leaser = r.leaser
				require.NoError(t, r.Ping(bg))
				pass(c.spend)
				require.NoError(t, r.Do(bg, scripted.Echo("slow"))) // the sweeper comes by, and moves the clock, while the chain runs
				release, answered := r.chained()
				l.take()
				cs, o := echoes("c", 10, carry.NoRetry), &outcomes{}
				submitAll(t, r, o, cs...)
				pass(4 * time.Millisecond)
				if c.then != nil {
					c.then(lent[0])
				}
				require.Zero(t, o.count())
				release()
				answered()
				pass(20 * time.Millisecond)
				ok(t, o, cs...)
				for _, w := range l.take() {
					require.Equal(t, c.turn, w.byReader)
				}
				require.Equal(t, c.conns, r.server.Conns())
				require.Zero(t, r.Stats().Cuts)
				require.Equal(t, c.granted, r.leaser.Counts().Granted)
			})
		})
	}
}

// Covers: E-23
func TestASessionThatIsToEndWaitsForNoChain(t *testing.T) {
	refusals := script{"chained3": first(1, scripted.Refuse("READONLY retry=1"))}
	turnBubble(t, setup{Server: refusals.options()}, func(t *testing.T, r *rig, l *turns) {
		release, answered := r.heldUp()
		l.take()
		c, began := scripted.Echo("c"), time.Now()
		require.NoError(t, <-r.later(bg, c))
		require.Less(t, time.Since(began), tick)
		require.Equal(t, 2, r.server.Conns())
		for _, w := range l.take() {
			require.False(t, w.byReader)
		}
		release()
		answered()
		require.Zero(t, r.Stats().Cuts)
	})
}

// Covers: E-6
func TestWhatIsToBeReroutedIsHandedOverThoughItIsTheReadersTurn(t *testing.T) {
	s := script{"chained3": first(1, scripted.Refuse("MOVED there:1"))}
	twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
		release, answered := p.a.chained()
		cs, o := echoes("c", 10, carry.NoRetry), &outcomes{}
		submitAll(t, p.a, o, cs...)
		synctest.Wait()
		require.Equal(t, 1, p.b.server.Executions("chained3"), "at once")
		release()
		answered()
		synctest.Wait()
		ok(t, o, cs...)
	})
}

// batched puts four batches of three commands in flight, who are answered by one read; one caller, who is to wake them, gets no CPU
// before release.
func (r *rig) batched(ctx func(i int) context.Context) (release func(), told []chan error) {
	r.t.Helper()
	require.NoError(r.t, r.Ping(bg))
	r.server.FreezeReplies(true)
	var h *fdengine.HeldUp
	for i := range 4 {
		cs, done := echoes("b"+itoa(i)+"-", 3, carry.NoRetry), make(chan error, 1)
		if i == 0 {
			cs[0].OnDecode = func(fdengine.Reply) { h = r.HoldUp() }
		}
		go func() { done <- r.DoBatch(ctx(i), commands(cs), nil) }()
		told = append(told, done)
		synctest.Wait()
	}
	r.server.FreezeReplies(false)
	synctest.Wait()
	require.NotNil(r.t, h)
	require.Equal(r.t, 1, r.Chains())
	return h.Release, told
}

// Covers: E-12, S4-3
func TestBatchesAreWokenInAChainAndTheReaderWritesAfterThem(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		release, told := r.batched(func(int) context.Context { return bg })
		l.take()
		for i, c := range told {
			require.Empty(t, c, i)
		}
		cs, o := echoes("c", 10, carry.NoRetry), &outcomes{}
		submitAll(t, r, o, cs...)
		synctest.Wait()
		require.Empty(t, l.take())
		release()
		synctest.Wait()
		for _, c := range told {
			require.NoError(t, <-c)
		}
		ok(t, o, cs...)
		require.Equal(t, []writing{{true, bytesOf(cs...), bytesOf(cs...)}}, l.take())
	})
}

// Covers: E-12, E-19
func TestABatchWhoseCallerLeavesWhenItHasBeenAnsweredStillWakesTheNext(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		ctx, leave := context.WithCancel(bg)
		defer leave()
		release, told := r.batched(func(i int) context.Context {
			if i == 1 || i == 2 {
				return ctx
			}
			return bg
		})
		leave()
		synctest.Wait()
		release()
		synctest.Wait()
		for i, c := range told {
			require.Len(t, c, 1, "batch %d", i)
			require.NoError(t, <-c, "all of it had been answered")
		}
		require.Zero(t, r.Chains())
	})
}

// Covers: E-12, E-19, E-42
func TestBatchesAndCallersWhoLeaveInAStormStrandNobody(t *testing.T) {
	const callers, rounds = 24, 60
	turnBubble(t, setup{}, func(t *testing.T, r *rig, _ *turns) {
		require.NoError(t, r.Ping(bg))
		within(t, time.Minute, func() {
			done := make(chan struct{})
			for i := range callers {
				go func() {
					defer func() { done <- struct{}{} }()
					for n := range rounds {
						ctx, leave := context.WithCancel(bg)
						if i%3 == 0 {
							go leave()
						}
						tok := itoa(i) + "-" + itoa(n) + "-"
						if i%2 == 0 {
							_ = r.DoBatch(ctx, commands(echoes(tok, 1+n%7, carry.NoRetry)), nil)
						} else {
							_ = r.Do(ctx, scripted.Echo(tok))
						}
						leave()
					}
				}()
			}
			for range callers {
				<-done
			}
		})
		synctest.Wait()
		require.Zero(t, r.Chains(), "each chain that was begun has been counted out")
		require.Equal(t, 1, r.server.Conns())
	})
}

// What the reader has written has left: its reply is due, though nothing of the rest is taken any more.
//
// Covers: E-16
func TestAReplyIsDueThoughNothingIsTakenBehindTheReadersWrite(t *testing.T) {
	const due = 400 * time.Millisecond
	for _, wt := range []time.Duration{-1, time.Second, 10 * time.Second} {
		turnBubble(t, setup{Engine: fdengine.Options{ReadTimeout: due, WriteTimeout: wt}}, func(t *testing.T, r *rig, l *turns) {
			cs := echoes("c", 6, carry.NoRetry)
			var first time.Duration
			var start time.Time
			o := &outcomes{then: func(cmd fdengine.Command, _ error) {
				if cmd == cs[0] {
					first = time.Since(start)
				}
			}}
			release, answered := r.chained()
			r.server.FreezeReads(true)
			submitAll(r.t, r, o, cs...)
			l.take()
			l.takes = bytesOf(cs[:3]...)
			r.conn(0).Out().SetBuffer(l.takes)
			r.conn(0).Out().Freeze()
			release()
			answered()
			synctest.Wait()
			start = time.Now()
			require.Equal(t, []writing{{true, l.takes, bytesOf(cs...)}}, l.take())
			pass(time.Minute)
			require.GreaterOrEqual(t, first, due, "WriteTimeout %v", wt)
			require.Less(t, first, due+due/4, "WriteTimeout %v", wt)
		})
	}
}

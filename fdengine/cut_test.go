package fdengine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// Covers: E-19, E-6
func TestTheCommandOfACallerWhoLeftIsNeverSentAgain(t *testing.T) {
	s := script{"head": first(1, scripted.DropAfter())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeExec(true)
		ctx, cancel := context.WithCancel(bg)
		head := r.later(bg, scripted.ReplayEcho("head"))
		synctest.Wait()
		ghost := r.later(ctx, scripted.ReplayEcho("ghost"))
		synctest.Wait()
		behind := r.later(bg, scripted.ReplayEcho("behind"))
		synctest.Wait()
		cancel()
		failsAs(t, <-ghost, carry.MaybeExecuted, context.Canceled)
		r.server.FreezeExec(false)
		require.NoError(t, <-head)
		require.NoError(t, <-behind)
		require.Equal(t, []string{"head", "behind"}, r.server.ConnTokens(1))
	})
}

// Covers: S4-5, E-6, C13
func TestOfAMixedTailOnlyWhatMayGoAgainGoesAgain(t *testing.T) {
	s := script{"head": first(1, scripted.DropAfter())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		head := scripted.ReplayEcho("head")
		a, b, c, d := scripted.Echo("a"), scripted.ReplayEcho("b"), scripted.ReplayEcho("c"), scripted.Echo("d")
		b.Traits.Budget = -1
		r.together(func() { submitAll(t, r, o, head, a, b, c, d) })
		pass(2 * time.Second)
		ok(t, o, head, c)
		failed(t, o, a, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
		failed(t, o, b, carry.MaybeExecuted, fdengine.ErrBudget)
		failed(t, o, d, carry.MaybeExecuted)
		require.Equal(t, []string{"head", "c"}, r.server.ConnTokens(1))
		require.Equal(t, 2, c.Sends)
		require.True(t, c.Maybe)
		require.Equal(t, uint64(2), r.Stats().Replays)
		require.Equal(t, 1, r.leaser.Counts().Removes)
	})
}

// Covers: C13, E-6
func TestProgressOfOthersDoesNotRefillABudget(t *testing.T) {
	s := script{"a": always(scripted.Action{}), "b": first(1, scripted.DropAfter()), "c": always(scripted.DropAfter())}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Budget: 1}}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		a, b, c := scripted.ReplayEcho("a"), scripted.ReplayEcho("b"), scripted.ReplayEcho("c")
		r.together(func() { submitAll(t, r, o, a, b, c) })
		pass(3 * time.Second)
		ok(t, o, a, b)
		failed(t, o, c, carry.MaybeExecuted, fdengine.ErrBudget)
		require.NotErrorIs(t, settledOf(t, o, c), fdengine.ErrPoisoned)
		require.Equal(t, 2, r.server.Conns(), "not sent on a third connection")
	})
}

// Covers: C18, S4-4
func TestAfterADropExactlyTheUnansweredTailIsSentAgainInOrder(t *testing.T) {
	s := script{"c10": first(1, scripted.DropBefore())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		cs := echoes("c", 50, carry.Replay)
		r.together(func() { submitAll(t, r, o, cs...) })
		pass(2 * time.Second)
		ok(t, o, cs...)
		require.Equal(t, tokens(cs)[10:], r.server.ConnTokens(1))
		for _, c := range cs[:10] {
			require.Equal(t, 1, c.Sends)
		}
	})
}

// Covers: E-46, C13, E-6
func TestAPoisonCommandBurnsNobodyElsesBudget(t *testing.T) {
	s := script{"poison": always(scripted.DropAfter())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		poison := scripted.ReplayEcho("poison")
		cs := echoes("c", 20, carry.Replay)
		r.leaser.OnLease = func(int) error { time.Sleep(10 * time.Millisecond); return nil }
		submitAll(t, r, o, poison)
		submitAll(t, r, o, cs...)
		pass(20 * time.Second)
		failed(t, o, poison, carry.MaybeExecuted, fdengine.ErrPoisoned, fdengine.ErrBudget)
		ok(t, o, cs...)
		for _, c := range cs {
			require.LessOrEqual(t, c.Sends, 2, "charged for the first death only")
		}
		for i := 1; i <= 3; i++ {
			require.Equal(t, []string{"poison"}, r.server.ConnTokens(i), "connection %d carries it alone", i)
		}
		require.Equal(t, 4, r.server.Executions("poison"))
	})
}

// Covers: C13, E-46
func TestWhatComesDuringThePoisonIsChargedNothing(t *testing.T) {
	s := script{"a": always(scripted.DropAfter())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		a, b := scripted.ReplayEcho("a"), scripted.Echo("b")
		submitted := false
		r.leaser.OnLease = func(n int) error {
			if n == 4 && !submitted {
				submitted = true
				require.NoError(t, r.Submit(bg, b, o))
			}
			return nil
		}
		submitAll(t, r, o, a)
		pass(20 * time.Second)
		failed(t, o, a, carry.MaybeExecuted, fdengine.ErrPoisoned)
		require.Equal(t, 4, r.server.Executions("a"))
		ok(t, o, b)
		require.Equal(t, 1, b.Sends)
		require.Equal(t, []string{"b"}, r.server.ConnTokens(4))
	})
}

// Covers: E-46, E-37
func TestABalancerThatAcceptsAndResetsPoisonsNobody(t *testing.T) {
	resets := 0
	dial := func(n int, c, s *memnet.Conn) error {
		if n > 1 && n < 9 {
			resets++
			s.Reset()
		}
		return nil
	}
	bubble(t, setup{OnDial: dial, Server: script{"a": first(1, scripted.DropAfter())}.options()}, func(t *testing.T, r *rig) {
		a := scripted.ReplayEcho("a")
		a.Traits.Budget = 1
		b := r.later(bg, scripted.Echo("b"))
		require.NoError(t, <-b)
		require.NoError(t, r.Do(bg, a))
		require.Equal(t, 7, resets)
		require.Equal(t, 2, a.Sends)
	})
}

// Covers: E-5, S4-6, C04
func TestACommandCutOneByteShortIsNotSent(t *testing.T) {
	for _, short := range []int64{1, 2, 20} {
		t.Run(fmt.Sprint(short), func(t *testing.T) {
			c := scripted.Echo("token")
			enc, _ := (&scripted.Cmd{Token: "token"}).AppendRequest(nil)
			bubble(t, setup{}, func(t *testing.T, r *rig) {
				require.NoError(t, r.Ping(bg))
				r.conn(0).Out().CutAfter(int64(len(enc))-short, memnet.Cut{})
				require.NoError(t, r.Do(bg, c), "NoRetry, and sent again: it was never sent")
				require.Equal(t, 1, c.Sends)
				require.False(t, c.Maybe)
				require.Equal(t, 1, r.server.Executions("token"))
			})
		})
	}
	t.Run("not short", func(t *testing.T) {
		c := scripted.Echo("token")
		enc, _ := (&scripted.Cmd{Token: "token"}).AppendRequest(nil)
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Ping(bg))
			r.conn(0).Out().CutAfter(int64(len(enc)), memnet.Cut{})
			failsAs(t, r.Do(bg, c), carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
			pass(time.Second)
			require.LessOrEqual(t, r.server.Executions("token"), 1)
		})
	})
	t.Run("a connection that cannot tell", func(t *testing.T) {
		c := scripted.Echo("token")
		bubble(t, setup{OnDial: func(_ int, c, _ *memnet.Conn) error { c.SetExactWrite(false); return nil }}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Ping(bg))
			r.conn(0).Out().CutAfter(3, memnet.Cut{})
			failsAs(t, r.Do(bg, c), carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
			pass(time.Second)
			require.Zero(t, r.server.Executions("token"))
		})
	})
}

// Covers: C04, E-9
func TestTheNextConnectionStartsWithAWholeFrameWhereverTheLastOneWasCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	big := &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 300<<10)}}
	enc, _ := big.AppendRequest(nil)
	for range 25 {
		at := rng.Int64N(int64(len(enc)))
		c := &scripted.Cmd{Token: "big", Args: big.Args, Traits: fdengine.Spec{Class: carry.Replay}}
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Ping(bg))
			r.conn(0).Out().CutAfter(at, memnet.Cut{Reset: at%2 == 0, Drop: at%2 == 0})
			e := r.later(bg, scripted.ReplayEcho("e"))
			require.NoError(t, r.Do(bg, c))
			require.NoError(t, <-e)
			reqs := r.server.Requests(r.server.Conns() - 1)
			for _, req := range reqs {
				if req.Token() == "big" {
					require.Equal(t, len(big.Args[0]), len(req.Args[2]))
				}
			}
			require.Equal(t, 1, r.server.Executions("big"))
		})
	}
}

// Covers: C04, E-9
func TestOfABacklogTheFullyAcceptedAreOverAndTheOthersGoAgain(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReads(true)
		r.conn(0).Out().SetBuffer(700 << 10)
		o := &outcomes{}
		var cs []*scripted.Cmd
		for _, tok := range []string{"A", "B", "C", "D"} {
			cs = append(cs, &scripted.Cmd{Token: tok, Args: []string{strings.Repeat(tok, 256<<10)}})
		}
		submitAll(t, r, o, cs...)
		synctest.Wait()
		require.NoError(t, r.conn(0).Reset())
		r.server.FreezeReads(false)
		pass(2 * time.Second)
		for _, c := range cs[:2] {
			failed(t, o, c, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
		}
		ok(t, o, cs[2:]...)
		require.Equal(t, []string{"C", "D"}, r.server.ConnTokens(1))
		require.NoError(t, r.Do(bg, scripted.Echo("e")))
	})
}

// Covers: C05, E-4, A-7, S0-7
func TestConnectionsThatDieAtAnyMomentLoseAndShiftNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	arm := func(_ int, c, s *memnet.Conn) error {
		at := 14 + rng.Int64N(600) // behind the handshake
		if rng.IntN(2) == 0 {
			c.Out().CutAt(at, memnet.Cut{Reset: true, Drop: rng.IntN(2) == 0})
		} else {
			c.In().CutAt(at, memnet.Cut{Reset: true, Drop: rng.IntN(2) == 0})
		}
		return nil
	}
	bubble(t, setup{OnDial: arm, Engine: fdengine.Options{BackoffMax: 20 * time.Millisecond}}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 60 {
					c := scripted.Echo(fmt.Sprintf("t%d-%d", g, i))
					if i%2 == 0 {
						c.Traits.Class = carry.Replay
					}
					switch err := r.Do(bg, c); {
					case err == nil:
						require.Equal(t, c.Token, c.Reply)
					default:
						require.NotEqual(t, carry.NotSent, fdengine.FateOf(err), "nothing gives up on what was not sent: %v", err)
						require.True(t, errors.Is(err, fdengine.ErrMaybeExecuted))
					}
				}
			})
		}
		wg.Wait()
		r.even()
		for g := range 8 {
			for i := range 60 {
				limit := 1
				if i%2 == 0 {
					limit = 4
				}
				require.LessOrEqual(t, r.server.Executions(fmt.Sprintf("t%d-%d", g, i)), limit)
			}
		}
		require.Greater(t, r.server.Conns(), 20)
	})
}

// Covers: S0-32, S0-29, S0-31
func TestATransportErrorIsTheCauseAndTheEngineServesOn(t *testing.T) {
	s := script{"n": always(scripted.Action{DropAfter: true, Reset: true})}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		err := r.Do(bg, scripted.Echo("n"))
		failsAs(t, err, carry.MaybeExecuted, syscall.ECONNRESET)
		require.NoError(t, r.Do(bg, scripted.Echo("next")))
		require.Equal(t, "running", r.Stats().State)
		require.NoError(t, r.Close())
		require.Equal(t, "closed", r.Stats().State)
		r.server.CloseConns()
		pass(time.Second)
		require.Equal(t, "closed", r.Stats().State, "nothing leads out of closed")
	})
}

// Covers: S0-30
func TestAReplyOfAnOldConnectionNeverCompletesACommandOfTheNext(t *testing.T) {
	s := script{"a": first(1, scripted.HalfReply()), "b": first(1, scripted.Action{})}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		a, b := scripted.ReplayEcho("a"), scripted.ReplayEcho("b")
		r.together(func() { submitAll(t, r, o, a, b) })
		pass(time.Second)
		ok(t, o, a, b)
		require.Equal(t, 2, a.Sends)
	})
}

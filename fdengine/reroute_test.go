package fdengine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// pair is two engines on two servers. Reroute of the first may be set by the test.
type pair struct {
	a, b *rig
	mu   struct {
		sync.Mutex
		route func(why error, cs []*fdengine.Carry)
		calls int
	}
}

func (p *pair) Reroute(why error, cs []*fdengine.Carry) {
	p.mu.Lock()
	p.mu.calls++
	f := p.mu.route
	p.mu.Unlock()
	f(why, cs)
}

func (p *pair) set(f func(why error, cs []*fdengine.Carry)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.route = f
}

// twoEngines runs f in a bubble; by default the first engine's carries go to the second.
func twoEngines(t *testing.T, first, second setup, f func(t *testing.T, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pair{}
		first.Engine.Rerouter = p
		p.a, p.b = newRig(t, first), newRig(t, second)
		p.set(func(_ error, cs []*fdengine.Carry) { p.b.Adopt(cs...) })
		defer p.a.abandon()
		defer p.b.abandon()
		f(t, p)
		for _, r := range []*rig{p.a, p.b} {
			require.NoError(t, r.Close())
			<-r.Done()
			require.NoError(t, r.leaser.Check())
			r.leaser.Close()
			require.NoError(t, r.server.Close())
		}
		inBooks(t, p)
	})
}

// Covers: E-6, E-18
func TestARedirectIsFollowedAndAnASKCarriesItsPrefix(t *testing.T) {
	s := script{"m": always(scripted.Refuse("MOVED 7 b:1")), "k": always(scripted.Refuse("ASK 7 b:1"))}
	twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
		var hints []fdengine.Hint
		var routes []uint64
		p.set(func(_ error, cs []*fdengine.Carry) {
			for _, c := range cs {
				hints, routes = append(hints, c.Hint()), append(routes, c.Route())
				require.Equal(t, 1, c.Redirects())
				require.Equal(t, carry.NotSent, c.Fate(), "a refusal is proof")
			}
			p.b.Adopt(cs...)
		})
		m, k := scripted.Echo("m"), scripted.Echo("k")
		m.Traits.Route, k.Traits.Route = 7, 8
		require.NoError(t, p.a.Do(bg, m), "NoRetry: it did not run")
		require.NoError(t, p.a.Do(bg, k))
		require.Equal(t, []string{"m", "k"}, []string{m.Reply, k.Reply}, "ASKING's own reply is nobody's")
		require.Equal(t, 2, k.Sends)
		require.False(t, k.Maybe)
		require.Equal(t, [][]string{{"PING"}, {"ECHO", "m"}, {"ASKING"}, {"ECHO", "k"}}, p.b.server.ConnLog(0))
		require.Equal(t, []uint64{7, 8}, routes)
		require.Equal(t, "b:1", hints[0].Addr)
		require.Equal(t, 1, p.a.server.Conns(), "a redirect is no reason to cut")
		pass(time.Second)
		sa, sb := p.a.Stats(), p.b.Stats()
		require.Equal(t, []uint64{2, 2, 0, 2}, []uint64{sa.Accepted, sa.Moved, sa.Settled, sa.Redirects})
		require.Equal(t, []uint64{2, 2}, []uint64{sb.Accepted, sb.Settled})
	})
}

// Covers: E-6
func TestRedirectsAreBoundedAndFreeOfTheBudget(t *testing.T) {
	back := script{"m": always(scripted.Refuse("MOVED 7 other:1"))}
	p2 := &pair{}
	synctest.Test(t, func(t *testing.T) {
		o := setup{Server: back.options(), Engine: fdengine.Options{MaxRedirects: 3, Budget: -1, Rerouter: p2}}
		a, b := newRig(t, o), newRig(t, o)
		hops := 0
		p2.set(func(_ error, cs []*fdengine.Carry) {
			if hops++; hops%2 == 1 {
				b.Adopt(cs...)
			} else {
				a.Adopt(cs...)
			}
		})
		m := scripted.Echo("m")
		err := a.Do(bg, m)
		var refusal *scripted.ServerError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, carry.Answered, fdengine.FateOf(err))
		require.Equal(t, 3, hops)
		require.Equal(t, 4, m.Sends)
		pass(time.Second)
		a.finish()
		b.finish()
	})
}

// Covers: E-6
func TestWithoutARerouterARedirectIsTheAnswer(t *testing.T) {
	bubble(t, setup{Server: script{"m": always(scripted.Refuse("MOVED 7 b:1"))}.options()}, func(t *testing.T, r *rig) {
		var refusal *scripted.ServerError
		require.ErrorAs(t, r.Do(bg, scripted.Echo("m")), &refusal)
		require.Equal(t, 1, r.server.Conns())
	})
}

// Covers: E-6, S0-31
func TestAfterACutAllThatIsStillToBeSentGoesToTheRerouterInOrder(t *testing.T) {
	s := script{"p0": always(scripted.DropAfter())}
	twoEngines(t, setup{Server: s.options(), Engine: fdengine.Options{Window: 6}}, setup{}, func(t *testing.T, p *pair) {
		o := &outcomes{}
		ps, ns := echoes("p", 3, carry.Replay), echoes("n", 3, carry.NoRetry)
		qs := echoes("q", 5, carry.NoRetry) // behind the window: not sent
		var got []string
		p.set(func(why error, cs []*fdengine.Carry) {
			require.Error(t, why)
			for _, c := range cs {
				got = append(got, c.Command().(*scripted.Cmd).Token)
			}
			p.b.Adopt(cs...)
		})
		p.a.together(func() {
			submitAll(t, p.a, o, ps...)
			submitAll(t, p.a, o, ns...)
			submitAll(t, p.a, o, qs...)
		})
		pass(5 * time.Second)
		for _, n := range ns {
			failed(t, o, n, carry.MaybeExecuted)
		}
		ok(t, o, ps...)
		ok(t, o, qs...)
		want := append(tokens(ps), tokens(qs)...)
		require.Equal(t, want, got)
		require.Equal(t, want, p.b.server.Order())
		require.Equal(t, 2, ps[0].Sends)
		require.True(t, ps[0].Maybe)
		require.Equal(t, 1, qs[0].Sends)
		require.Equal(t, 1, p.a.server.Conns(), "nothing is left to dial for")
	})
}

// Covers: E-6
func TestTheBudgetIsSummedOverEngines(t *testing.T) {
	die := script{"p": always(scripted.DropAfter())}
	p2 := &pair{}
	synctest.Test(t, func(t *testing.T) {
		o := setup{Server: die.options(), Engine: fdengine.Options{Budget: 2, Rerouter: p2}}
		a, b := newRig(t, o), newRig(t, o)
		n := 0
		p2.set(func(_ error, cs []*fdengine.Carry) {
			if n++; n%2 == 1 {
				b.Adopt(cs...)
			} else {
				a.Adopt(cs...)
			}
		})
		failsAs(t, a.Do(bg, scripted.ReplayEcho("p")), carry.MaybeExecuted, fdengine.ErrBudget)
		require.Equal(t, 3, a.server.Executions("p")+b.server.Executions("p"))
		pass(time.Second)
		a.finish()
		b.finish()
	})
}

// Covers: E-6, E-41
func TestACarryMayBeFailedOnceAndOnlyOnce(t *testing.T) {
	s := script{"m": always(scripted.Refuse("MOVED 7 b:1")), "d": first(1, scripted.DropAfter())}
	twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
		nowhere := errors.New("nowhere")
		p.set(func(_ error, cs []*fdengine.Carry) {
			for _, c := range cs {
				c.Fail(nowhere)
				c.Fail(errors.New("twice"))
				p.b.Adopt(c)
			}
		})
		failsAs(t, p.a.Do(bg, scripted.Echo("m")), carry.NotSent, nowhere, fdengine.ErrNotSent)
		failsAs(t, p.a.Do(bg, scripted.ReplayEcho("d")), carry.MaybeExecuted, nowhere, fdengine.ErrMaybeExecuted)
		pass(time.Second)
		require.Zero(t, p.b.server.Conns())
		p.set(func(_ error, cs []*fdengine.Carry) {
			p.b.Adopt(cs...)
			p.b.Adopt(cs...)
			cs[0].Fail(nowhere)
		})
		m := scripted.Echo("m")
		require.NoError(t, p.a.Do(bg, m))
		require.Equal(t, 1, p.b.server.Executions("m"))
	})
}

// Covers: E-6, E-14
func TestACarryThatReachesAClosedEngineEndsByItsFate(t *testing.T) {
	s := script{"m": always(scripted.Refuse("MOVED 7 b:1"))}
	twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
		require.NoError(t, p.b.Close())
		<-p.b.Done()
		failsAs(t, p.a.Do(bg, scripted.Echo("m")), carry.NotSent, fdengine.ErrClosed)
		pass(time.Second)
		p.a.even()
	})
}

// Covers: E-19, E-6
func TestACallerMayLeaveWhileItsCommandIsInTransit(t *testing.T) {
	s := script{"m": always(scripted.Refuse("MOVED 7 b:1"))}
	twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
		hold := make(chan struct{})
		p.set(func(_ error, cs []*fdengine.Carry) {
			<-hold
			p.b.Adopt(cs...)
		})
		ctx, cancel := context.WithCancel(bg)
		res := p.a.later(ctx, scripted.Echo("m"))
		synctest.Wait()
		cancel()
		failsAs(t, <-res, carry.NotSent, context.Canceled)
		close(hold)
		pass(time.Second)
		require.Zero(t, p.b.server.Executions("m"))
		inBooks(t, p)
	})
}

// A caller who leaves a command that another engine adopted gives back room there, and those who wait for it there
// were not told.
//
// Covers: E-11, E-19
func TestACallerWhoLeavesAfterTheMoveGivesRoomBackWhereItIs(t *testing.T) {
	s := script{"m": always(scripted.Refuse("MOVED 7 b:1"))}
	twoEngines(t, setup{Server: s.options()}, setup{NoStart: true, Engine: fdengine.Options{Window: 1, Queue: 1}}, func(t *testing.T, p *pair) {
		o := &outcomes{}
		require.NoError(t, p.b.Submit(bg, scripted.Echo("x"), o))
		ctx, cancel := context.WithCancel(bg)
		res := p.a.later(ctx, scripted.Echo("m"))
		pass(10 * time.Millisecond)
		y := p.b.later(bg, scripted.Echo("y"))
		synctest.Wait()
		cancel()
		failsAs(t, <-res, carry.NotSent, context.Canceled)
		pass(50 * time.Millisecond)
		require.Equal(t, 2, p.b.Stats().QueueCommands, "y was let in")
		p.b.listen()
		require.NoError(t, <-y)
		pass(time.Second)
		require.Zero(t, p.b.server.Executions("m"))
		inBooks(t, p)
	})
}

// inBooks checks the sum over both engines: a command whose caller left after it moved is counted by its first.
func inBooks(t *testing.T, p *pair) {
	t.Helper()
	a, b := p.a.Stats(), p.b.Stats()
	require.Equal(t, a.Accepted+b.Accepted, a.Settled+b.Settled+a.Moved+b.Moved, "%+v\n%+v", a, b)
	require.Zero(t, a.QueueCommands+a.InFlightCommands+b.QueueCommands+b.InFlightCommands)
}

// Covers: E-43, E-42
func TestCallsThatMovedDoNotMixWithLaterOnes(t *testing.T) {
	s := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Token()[0] == 'm' {
			return scripted.Refuse("MOVED 7 b:1")
		}
		return scripted.Action{}
	}}
	twoEngines(t, setup{Server: s}, setup{}, func(t *testing.T, p *pair) {
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 100 {
					c := scripted.Echo([]string{"m", "s"}[i%2] + itoa(g) + "-" + itoa(i))
					require.NoError(t, p.a.Do(bg, c))
					require.Equal(t, c.Token, c.Reply)
				}
			})
			wg.Go(func() {
				for i := range 20 {
					cs := []fdengine.Command{scripted.Echo("m" + itoa(g) + "b" + itoa(i)), scripted.Echo("s" + itoa(g) + "b" + itoa(i))}
					require.NoError(t, p.a.DoBatch(bg, cs, nil))
				}
			})
		}
		wg.Wait()
		pass(time.Second)
	})
}

// Covers: E-6, S2-19
func TestARerouterThatBlocksDoesNotStopTheReader(t *testing.T) {
	s := script{"m": always(scripted.Refuse("MOVED 7 b:1"))}
	twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
		hold := make(chan struct{})
		p.set(func(_ error, cs []*fdengine.Carry) { <-hold; p.b.Adopt(cs...) })
		o := &outcomes{}
		m, x := scripted.Echo("m"), scripted.Echo("x")
		p.a.together(func() { submitAll(t, p.a, o, m, x) })
		synctest.Wait()
		ok(t, o, x)
		require.NoError(t, p.a.Close())
		close(hold)
		pass(time.Second)
		require.NotNil(t, o)
		_, told := o.of(m)
		require.True(t, told, "adopted, whatever became of its first engine")
	})
}

// Covers: E-6
func TestAnExpiryInTransitIsKept(t *testing.T) {
	s := script{"m": always(scripted.Refuse("MOVED 7 b:1"))}
	twoEngines(t, setup{Server: s.options()}, setup{NoStart: true}, func(t *testing.T, p *pair) {
		pass(3 * time.Second) // the engines' clocks differ
		m := scripted.Echo("m")
		m.Traits.Timeout = 500 * time.Millisecond
		var err error
		d := took(func() { err = p.a.Do(bg, m) })
		failsAs(t, err, carry.NotSent, fdengine.ErrTimeout)
		require.InDelta(t, 505, d.Milliseconds(), 15)
	})
}

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

// Covers: E-34, S4-17
func TestEachTerminalPathGivesOneSample(t *testing.T) {
	type path struct {
		server script
		engine fdengine.Options
		run    func(t *testing.T, r *rig) // ends one command after about 100 ms
		fate   carry.Fate
		fine   bool
		noConn bool
	}
	do := func(c *scripted.Cmd) func(*testing.T, *rig) {
		return func(_ *testing.T, r *rig) { _ = r.Do(bg, c) }
	}
	within100 := func(c *scripted.Cmd) *scripted.Cmd { c.Traits.Timeout = 100 * time.Millisecond; return c }
	cancelled := func(_ *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		_ = r.Do(ctx, scripted.Echo("slow"))
	}
	slow := script{"slow": always(scripted.Delay(time.Minute))}
	in100 := 100 * time.Millisecond
	paths := map[string]path{
		"reply":           {server: script{"c": always(scripted.Delay(in100))}, run: do(scripted.Echo("c")), fate: carry.Answered, fine: true},
		"refusal":         {server: script{"c": always(scripted.Action{Delay: in100, Refuse: "ERR no"})}, run: do(scripted.Echo("c")), fate: carry.Answered},
		"cancel in queue": {run: cancelled, fate: carry.NotSent, noConn: true},
		"cancel in flight": {server: slow, run: cancelled, fate: carry.MaybeExecuted,
			engine: fdengine.Options{ReadTimeout: -1}},
		"expiry in queue":  {run: do(within100(scripted.Echo("c"))), fate: carry.NotSent, noConn: true},
		"expiry in flight": {server: slow, run: do(within100(scripted.Echo("slow"))), fate: carry.MaybeExecuted, engine: fdengine.Options{ReadTimeout: -1}},
		"cut":              {server: script{"c": always(scripted.Action{Delay: in100, DropAfter: true})}, run: do(scripted.Echo("c")), fate: carry.MaybeExecuted},
		"budget": {server: script{"c": always(scripted.Action{Delay: in100, DropAfter: true})}, fate: carry.MaybeExecuted,
			engine: fdengine.Options{Budget: -1}, run: do(scripted.ReplayEcho("c"))},
		"outage": {run: do(scripted.Echo("c")), engine: fdengine.Options{MaxOutage: in100}, fate: carry.NotSent, noConn: true},
		"denial": {run: do(scripted.Echo("c")), fate: carry.NotSent,
			engine: fdengine.Options{Limiter: &limiter{onAllow: func() { <-time.After(in100); panic("no") }}}},
		"lease failure": {run: func(_ *testing.T, r *rig) {
			r.leaser.OnLease = func(int) error { <-time.After(in100); return pool.Permanent(errDown) }
			_ = r.Do(bg, scripted.Echo("c"))
		}, fate: carry.NotSent},
		"close": {server: slow, run: func(_ *testing.T, r *rig) {
			res := r.later(bg, scripted.Echo("slow"))
			pass(in100)
			_ = r.Close()
			<-res
		}, fate: carry.MaybeExecuted},
		"decoder panic": {server: script{"c": always(scripted.Delay(in100))}, run: do(&scripted.Cmd{Token: "c", DecodePanic: "x"}), fate: carry.Answered},
		"too large":     {server: script{"c": always(scripted.Delay(in100))}, run: do(scripted.Echo("c")), engine: fdengine.Options{MaxReply: 6}, fate: carry.Answered},
		"batch": {server: script{"c": always(scripted.Delay(in100))}, run: func(_ *testing.T, r *rig) {
			_ = r.DoBatch(bg, []fdengine.Command{scripted.Echo("c")}, nil)
		}, fate: carry.Answered, fine: true},
		"reroute failed": {server: script{"c": always(scripted.Action{Delay: in100, Refuse: "MOVED 1 b:1"})}, run: do(scripted.Echo("c")), fate: carry.NotSent,
			engine: fdengine.Options{Rerouter: rerouteFunc(func(_ error, cs []*fdengine.Carry) {
				for _, c := range cs {
					c.Fail(errDown)
				}
			})}},
	}
	for name, p := range paths {
		t.Run(name, func(t *testing.T) {
			obs := &events{}
			p.engine.Observer = obs
			bubble(t, setup{Server: p.server.options(), Engine: p.engine, NoStart: p.noConn}, func(t *testing.T, r *rig) {
				if !p.noConn && name != "denial" && name != "too large" && name != "lease failure" {
					require.NoError(t, r.Do(bg, &scripted.Cmd{Token: "warm"}))
				}
				pass(time.Second)
				before := len(obs.samples())
				p.run(t, r)
				pass(200 * time.Millisecond)
				got := obs.samples()[before:]
				require.Len(t, got, 1)
				require.Equal(t, p.fate, got[0].Fate)
				require.Equal(t, p.fine, got[0].Err == nil)
				require.InDelta(t, 100, got[0].Took.Milliseconds(), 30, "from the submit on")
				if !p.fine {
					require.Equal(t, p.fate, fdengine.FateOf(got[0].Err))
				}
			})
		})
	}
}

// Covers: E-34
func TestTheObserverHearsOfSessionsWritesAndRetries(t *testing.T) {
	obs := &events{}
	s := script{"d": first(1, scripted.DropAfter()), "ro": first(1, scripted.Refuse("READONLY retry=1"))}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Observer: obs}}, func(t *testing.T, r *rig) {
		r.leaser.OnLease = func(n int) error {
			if n == 1 {
				return errDown
			}
			return nil
		}
		require.NoError(t, r.Do(bg, scripted.ReplayEcho("d")))
		require.NoError(t, r.Do(bg, scripted.Echo("ro")))
		_, err := r.shutdown(time.Second)
		require.NoError(t, err)
		<-r.Done()
		require.Len(t, obs.of(fdengine.EventLeaseFailed), 1)
		require.ErrorIs(t, obs.of(fdengine.EventLeaseFailed)[0].Err, errDown)
		require.Len(t, obs.of(fdengine.EventSessionStart), 3)
		var reasons []string
		for _, ev := range obs.of(fdengine.EventSessionEnd) {
			reasons = append(reasons, ev.Reason)
			require.Equal(t, "server", ev.Addr)
		}
		require.Equal(t, []string{"cut", "retire", "graceful"}, reasons)
		require.Len(t, obs.of(fdengine.EventRetried), 2)
		n, bytes := 0, 0
		for _, ev := range obs.of(fdengine.EventWrote) {
			n, bytes = n+ev.Commands, bytes+ev.Bytes
		}
		require.Equal(t, 4, n)
		require.Greater(t, bytes, 60)
	})
}

// Covers: E-47
func TestACompletionThatBlocksIsReported(t *testing.T) {
	obs := &events{}
	bubble(t, setup{Engine: fdengine.Options{Observer: obs}}, func(t *testing.T, r *rig) {
		oc := &outcomes{then: func(fdengine.Command, error) { time.Sleep(5 * time.Second) }}
		submitAll(t, r, oc, scripted.Echo("a"))
		pass(6 * time.Second)
		stuck := obs.of(fdengine.EventStuck)
		require.Len(t, stuck, 1)
		require.Greater(t, stuck[0].Took, time.Second)
	})
}

// Covers: E-35, E-34
func TestTheStatsAreExactAfterQuiescence(t *testing.T) {
	s := script{"d": first(1, scripted.DropAfter()), "l": first(2, scripted.Refuse("LOADING retry=1")), "n": always(scripted.DropAfter())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		require.Equal(t, fdengine.Stats{State: "idle"}, r.Stats())
		for _, c := range echoes("c", 10, carry.NoRetry) {
			require.NoError(t, r.Do(bg, c))
			require.Equal(t, r.Stats().Accepted, r.Stats().Settled, "also at once")
		}
		require.NoError(t, r.Do(bg, scripted.ReplayEcho("d")))
		require.NoError(t, r.Do(bg, scripted.Echo("l")))
		require.Error(t, r.Do(bg, scripted.Echo("n")))
		ctx, cancel := context.WithCancel(bg)
		cancel()
		require.Error(t, r.Do(ctx, scripted.Echo("x")))
		pass(time.Second)
		st := r.Stats()
		require.Equal(t, []uint64{13, 13, 12, 0, 1, 1}, []uint64{st.Accepted, st.Settled, st.Answered, st.NotSent, st.Maybe, st.Rejected})
		require.Equal(t, []uint64{1, 2, 2, 2}, []uint64{st.Replays, st.Refusals, st.Cuts, st.Sessions})
		require.Equal(t, []uint64{16, 14}, []uint64{st.Sent, st.Replies})
		require.Zero(t, st.QueueCommands+st.QueueBytes+st.InFlightCommands+st.InFlightBytes)
		require.Zero(t, st.OldestAge)

		r.server.FreezeExec(true)
		r.leaser.OnLease = nil
		oc := &outcomes{}
		require.NoError(t, r.Submit(bg, scripted.Echo("y"), oc))
		pass(3 * time.Second)
		r.server.FreezeExec(false)
		pass(time.Second)
		require.Equal(t, 1, oc.count())
	})
}

// Covers: E-35
func TestTheGaugesShowWhatIsUnderWay(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{Window: 3}}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		r.together(func() {
			submitAll(t, r, oc, echoes("c", 10, carry.NoRetry)...)
			pass(2 * time.Second)
			st := r.Stats()
			require.Equal(t, []int{3, 7}, []int{st.InFlightCommands, st.QueueCommands})
			require.Equal(t, []int{3 * 22, 7 * 22}, []int{st.InFlightBytes, st.QueueBytes})
			require.Equal(t, 2*time.Second, st.OldestAge)
			require.Equal(t, "running", st.State)
		})
		pass(time.Second)
	})
}

// Covers: E-11, C17
func TestDialsFollowTheBackoff(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		o := fdengine.Options{MaxOutage: time.Second}
		bubble(t, setup{NoStart: true, Engine: o}, func(t *testing.T, r *rig) {
			d := took(func() { failsAs(t, r.Do(bg, scripted.Echo("x")), carry.NotSent, fdengine.ErrUnavailable) })
			require.InDelta(t, 1000, d.Milliseconds(), 50)
			require.InDelta(t, 12, r.net.Dials(), 10)
			pass(time.Hour)
			require.Less(t, r.net.Dials(), 30, "no work, no dial")
		})
	})
	t.Run("accepted and closed", func(t *testing.T) {
		o := fdengine.Options{BackoffMin: 50 * time.Millisecond}
		bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
			r.server.RefuseConns(true)
			c := scripted.Echo("x")
			c.Traits.Timeout = 5 * time.Second
			failsAs(t, r.Do(bg, c), carry.NotSent, fdengine.ErrTimeout)
			require.LessOrEqual(t, r.net.Dials(), 25)
			require.GreaterOrEqual(t, r.net.Dials(), 5)
		})
	})
	t.Run("connections that serve nobody", func(t *testing.T) {
		// The handshake succeeds and then the connection dies: only a good reply ends the growth of the backoff.
		s := script{"p": first(12, scripted.DropBefore())}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			c := scripted.ReplayEcho("p")
			c.Traits.Budget = 100
			d := took(func() { require.NoError(t, r.Do(bg, c)) })
			require.Greater(t, d, time.Second, "twelve pauses, growing")
			pass(time.Second)
			r.server.CloseConns()
			d = took(func() { require.NoError(t, r.Do(bg, scripted.ReplayEcho("q"))) })
			require.Less(t, d, 100*time.Millisecond, "and starts over after one")
		})
	})
	t.Run("many engines do not come in step", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			start := time.Now()
			var rs []*rig
			for range 100 {
				r := newRig(t, setup{})
				r.leaser.OnLease = func(int) error {
					if time.Since(start) < 3*time.Second {
						return errDown
					}
					return nil
				}
				rs = append(rs, r)
				go func() { _ = r.Do(bg, scripted.Echo("x")) }()
			}
			synctest.Wait()
			buckets := map[time.Duration]int{}
			for range 500 {
				pass(20 * time.Millisecond)
				n := 0
				for _, r := range rs {
					n += r.leaser.Counts().Granted
				}
				at = append(at, time.Duration(n))
			}
			for i := 1; i < len(at); i++ {
				buckets[time.Duration(i)] = int(at[i] - at[i-1])
				require.LessOrEqual(t, buckets[time.Duration(i)], 20)
			}
			require.Equal(t, time.Duration(100), at[len(at)-1])
			for _, r := range rs {
				r.finish()
			}
		})
	})
}

// Covers: E-24, C17
func TestACommandsOwnWaitWithoutAConnectionIsBounded(t *testing.T) {
	bubble(t, setup{NoStart: true, Engine: fdengine.Options{MaxOutage: 2 * time.Second, BackoffMax: 100 * time.Millisecond}}, func(t *testing.T, r *rig) {
		old := r.later(bg, scripted.Echo("old"))
		pass(1500 * time.Millisecond)
		young := r.later(bg, scripted.Echo("young")) // the outage before its submit does not count
		failsAs(t, <-old, carry.NotSent, fdengine.ErrUnavailable)
		pass(900 * time.Millisecond)
		select {
		case err := <-young:
			t.Fatalf("too early: %v", err)
		default:
		}
		r.listen()
		require.NoError(t, <-young)
	})
	bubble(t, setup{NoStart: true, Engine: fdengine.Options{MaxOutage: -1}}, func(t *testing.T, r *rig) {
		c := r.later(bg, scripted.Echo("c"))
		pass(time.Hour)
		r.listen()
		require.NoError(t, <-c)
	})
}

// Covers: C38, E-25
func TestAServerThatLoadsIsNoConnectionYet(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		r.server.RefuseAll("LOADING Redis is loading the dataset in memory")
		oc := &outcomes{}
		cs := echoes("c", 100, carry.NoRetry)
		for _, c := range cs {
			c.Traits.Timeout = 5 * time.Second
		}
		short := scripted.Echo("short")
		short.Traits.Timeout = 500 * time.Millisecond
		submitAll(t, r, oc, cs...)
		failsAs(t, r.Do(bg, short), carry.NotSent, fdengine.ErrTimeout)
		pass(1500 * time.Millisecond)
		require.LessOrEqual(t, r.net.Dials(), 20)
		for i := range r.server.Conns() {
			require.Empty(t, r.server.ConnTokens(i), "no command before the handshake passed")
		}
		r.server.RefuseAll("")
		pass(2 * time.Second)
		ok(t, oc, cs...)
		require.Equal(t, tokens(cs), r.server.Order())
	})
}

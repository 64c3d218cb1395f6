package fdengine_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
	"github.com/fdengine/fullduplex/pool"
)

// misdeeds are the two ways foreign code fails without returning.
var misdeeds = map[string]func(){
	"panic":     func() { panic("boom") },
	"nil panic": func() { panic(nil) },
	"goexit":    func() { runtime.Goexit() },
}

// misbehave runs f once per misdeed.
func misbehave(t *testing.T, f func(t *testing.T, deed func())) {
	for name, deed := range misdeeds {
		t.Run(name, func(t *testing.T) { f(t, deed) })
	}
}

// Covers: S4-14, E-3, E-7
func TestACompletionThatFailsAfterAReplyChangesNoOutcome(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			cs := echoes("c", 20, carry.NoRetry)
			o := &outcomes{then: func(cmd fdengine.Command, _ error) {
				if n := cmd.(*scripted.Cmd).Token; n == "c3" || n == "c4" || n == "c19" {
					deed()
				}
			}}
			submitAll(t, r, o, cs...)
			pass(time.Second)
			ok(t, o, cs...)
			require.Equal(t, 1, r.server.Conns(), "the connection lives")
			require.Equal(t, uint64(3), r.Stats().Panics)
			require.NoError(t, r.Do(bg, scripted.Echo("after")))
			require.Equal(t, 1, r.server.Conns())
		})
	})
}

// Covers: S4-14
func TestACompletionThatFailsAfterACutLeavesTheEngineAlive(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		bubble(t, setup{Server: script{"n1": always(scripted.DropAfter())}.options()}, func(t *testing.T, r *rig) {
			o := &outcomes{then: func(cmd fdengine.Command, err error) {
				if err != nil {
					deed()
				}
			}}
			cs := echoes("n", 4, carry.NoRetry)
			p := scripted.ReplayEcho("p")
			r.together(func() {
				submitAll(t, r, o, cs...)
				submitAll(t, r, o, p)
			})
			pass(3 * time.Second)
			ok(t, o, cs[0], p)
			for _, c := range cs[1:] {
				failed(t, o, c, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
			}
			require.Equal(t, 2, r.server.Executions("p")+r.server.Executions("n1"))
			require.Equal(t, uint64(3), r.Stats().Panics)
		})
	})
}

// Covers: S4-14
func TestACompletionThatFailsAfterAPermanentLeaseErrorLeavesTheEngineAlive(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			wrong := errors.New("WRONGPASS")
			r.leaser.OnLease = func(n int) error {
				if n == 1 {
					time.Sleep(10 * time.Millisecond) // all of them are queued by then
					return pool.Permanent(wrong)
				}
				return nil
			}
			o := &outcomes{then: func(_ fdengine.Command, err error) {
				if err != nil {
					deed()
				}
			}}
			cs := echoes("c", 3, carry.NoRetry)
			submitAll(t, r, o, cs...)
			pass(2 * time.Second)
			for _, c := range cs {
				failed(t, o, c, carry.NotSent, fdengine.ErrUnavailable, wrong)
			}
			require.NoError(t, r.Do(bg, scripted.Echo("after")))
		})
	})
}

// Covers: S4-14
func TestACompletionThatFailsAfterTheSweeperOrCloseIsHarmless(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
			o := &outcomes{then: func(fdengine.Command, error) { deed() }}
			cs := echoes("c", 3, carry.NoRetry)
			for _, c := range cs {
				c.Traits.Timeout = time.Second
			}
			submitAll(t, r, o, cs...)
			late := echoes("l", 3, carry.NoRetry)
			submitAll(t, r, o, late...)
			pass(1100 * time.Millisecond)
			for _, c := range cs {
				failed(t, o, c, carry.NotSent, fdengine.ErrTimeout)
			}
			require.NoError(t, r.Close())
			<-r.Done()
			for _, c := range late {
				failed(t, o, c, carry.NotSent, fdengine.ErrClosed)
			}
		})
	})
}

// Covers: S4-14, E-7
func TestAnObserverThatFailsIsHarmless(t *testing.T) {
	kinds := map[string]fdengine.EventKind{
		"completed": fdengine.EventCompleted, "wrote": fdengine.EventWrote, "retried": fdengine.EventRetried,
		"start": fdengine.EventSessionStart, "end": fdengine.EventSessionEnd, "lease": fdengine.EventLeaseFailed,
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			misbehave(t, func(t *testing.T, deed func()) {
				told := 0
				obs := &events{}
				obs.then = func(ev fdengine.Event) {
					if ev.Kind == kind {
						obs.mu.Lock()
						told++
						obs.mu.Unlock()
						deed()
					}
				}
				s := script{
					"d": first(1, scripted.DropAfter()),
					"l": first(2, scripted.Refuse("LOADING")),
				}
				bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Observer: obs}}, func(t *testing.T, r *rig) {
					r.leaser.OnLease = func(n int) error {
						if n == 1 {
							return errors.New("no")
						}
						return nil
					}
					o := &outcomes{}
					cs := []*scripted.Cmd{scripted.ReplayEcho("a"), scripted.ReplayEcho("d"), scripted.ReplayEcho("l"), scripted.ReplayEcho("z")}
					for _, c := range cs {
						c.Traits.Budget = 100
					}
					submitAll(t, r, o, cs...)
					pass(20 * time.Second)
					ok(t, o, cs...)
					require.Positive(t, told)
				})
			})
		})
	}
}

// Covers: S4-14
func TestARerouterThatFailsEndsTheCarriesByTheirFate(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		s := script{"m": always(scripted.Refuse("MOVED 1 b:1")), "d": first(1, scripted.DropAfter())}
		bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Rerouter: rerouteFunc(func(error, []*fdengine.Carry) { deed() })}},
			func(t *testing.T, r *rig) {
				o := &outcomes{}
				m := scripted.Echo("m")
				submitAll(t, r, o, m)
				pass(time.Second)
				failed(t, o, m, carry.NotSent)
				var p *panics.Error
				require.ErrorAs(t, settledOf(t, o, m), &p)
				d, q := scripted.ReplayEcho("d"), scripted.ReplayEcho("q")
				r.together(func() { submitAll(t, r, o, d, q) })
				pass(time.Second)
				failed(t, o, d, carry.MaybeExecuted)
				failed(t, o, q, carry.MaybeExecuted)
				require.NoError(t, r.Do(bg, scripted.Echo("after")))
			})
	})
}

// rerouteFunc is a Rerouter.
type rerouteFunc func(why error, cs []*fdengine.Carry)

func (f rerouteFunc) Reroute(why error, cs []*fdengine.Carry) { f(why, cs) }

// Covers: S4-14
func TestAHookOnTheCallersSideThatFailsLeavesNoTrace(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		st := r.Stream()
		for name, bad := range map[string]*scripted.Cmd{
			"spec": {Token: "x", SpecPanic: "boom"}, "encode": {Token: "x", EncodePanic: "boom"},
		} {
			err := r.Do(bg, bad)
			failsAs(t, err, carry.NotSent, fdengine.ErrNotSent)
			var p *panics.Error
			require.ErrorAs(t, err, &p, name)
			require.Equal(t, "AppendRequest", p.Boundary)
			require.NotEmpty(t, p.Stack)
			require.Error(t, st.Do(bg, bad))
			require.Error(t, r.Submit(bg, bad, &outcomes{}))
			require.Error(t, r.TrySubmit(bad, &outcomes{}))
		}
		// A Goexit ends the caller's goroutine, which is his; nothing of it may stay behind.
		for _, f := range []func(fdengine.Command){
			func(c fdengine.Command) { _ = r.Do(bg, c) },
			func(c fdengine.Command) { _ = st.Do(bg, c) },
			func(c fdengine.Command) { _ = st.Submit(bg, c, &outcomes{}) },
			func(c fdengine.Command) { _ = r.DoBatch(bg, []fdengine.Command{c}, nil) },
		} {
			go f(exitingCmd{})
			synctest.Wait()
		}
		within(t, time.Second, func() { require.NoError(t, st.Flush(bg)) })
		require.Zero(t, r.Stats().Accepted)
		require.Zero(t, r.server.Conns(), "no connection for nothing")
	})
}

// exitingCmd ends the goroutine that encodes it.
type exitingCmd struct{}

func (exitingCmd) AppendRequest([]byte) ([]byte, error) { runtime.Goexit(); return nil, nil }
func (exitingCmd) DecodeReply(fdengine.Reply) error     { return nil }

package fdengine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// Covers: E-47
func TestACompletionThatBlocksHoldsUpNeitherCloseNorShutdown(t *testing.T) {
	for _, how := range []string{"close", "shutdown"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, setup{}, func(t *testing.T, r *rig) {
				free := make(chan struct{})
				a := scripted.Echo("a")
				oc := &outcomes{}
				oc.then = func(cmd fdengine.Command, _ error) {
					if cmd == fdengine.Command(a) {
						<-free
					}
				}
				b, c := scripted.Echo("b"), scripted.Echo("c")
				r.together(func() { submitAll(t, r, oc, a, b) })
				synctest.Wait()
				d := r.later(bg, c)
				synctest.Wait()
				if how == "close" {
					require.Zero(t, took(func() { require.NoError(t, r.Close()) }))
				} else {
					_, err := r.shutdown(time.Second)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				synctest.Wait()
				failsAs(t, <-d, carry.MaybeExecuted, fdengine.ErrClosed)
				pass(time.Second)
				failed(t, oc, b, carry.MaybeExecuted, fdengine.ErrClosed)
				select {
				case <-r.Done():
					t.Fatal("done while foreign code runs")
				default:
				}
				close(free)
				<-r.Done()
				require.NoError(t, settledOf(t, oc, a))
			})
		})
	}
}

// Covers: E-47
func TestCompletionsThatBlockInCloseHoldUpNobody(t *testing.T) {
	bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
		free := make(chan struct{})
		oc := &outcomes{then: func(fdengine.Command, error) { <-free }}
		submitAll(t, r, oc, echoes("c", 5, carry.NoRetry)...)
		d := r.later(bg, scripted.Echo("d"))
		synctest.Wait()
		require.NoError(t, r.Close())
		failsAs(t, <-d, carry.NotSent, fdengine.ErrClosed)
		pass(5 * time.Second)
		require.Equal(t, 5, oc.count(), "each is told although those before it block")
		close(free)
	})
}

// Covers: E-47, E-33
func TestCloseFromInsideAnyHookDoesNotDeadlock(t *testing.T) {
	hooks := map[string]func(o *setup, closer func()){
		"gate": func(o *setup, f func()) {
			o.Engine.Gate = func(context.Context, fdengine.Command) error { f(); return nil }
		},
		"push":     func(o *setup, f func()) { o.Engine.OnPush = func([]byte) { f() } },
		"observer": func(o *setup, f func()) { o.Engine.Observer = &events{then: func(fdengine.Event) { f() }} },
		"limiter":  func(o *setup, f func()) { o.Engine.Limiter = &limiter{onAllow: f} },
		"report":   func(o *setup, f func()) { o.Engine.Limiter = &limiter{onReport: f} },
		"protocol": func(o *setup, f func()) {
			o.Engine.Protocol = func() fdengine.Protocol { f(); return scripted.NewProtocol() }
		},
		"complete": func(*setup, func()) {}, "decode": func(*setup, func()) {},
	}
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			var r *rig
			o := setup{Server: script{"a": always(scripted.Action{PushBefore: scripted.PushFrame("x")})}.options()}
			hook(&o, func() { _ = r.Close() })
			bubble(t, o, func(t *testing.T, rr *rig) {
				r = rr
				oc := &outcomes{}
				a, b := scripted.Echo("a"), scripted.Echo("b")
				switch name {
				case "complete":
					oc.then = func(fdengine.Command, error) { _ = r.Close() }
				case "decode":
					a.OnDecode = func(fdengine.Reply) { _ = r.Close() }
				}
				n := 0
				for _, c := range []*scripted.Cmd{a, b} {
					if r.Submit(bg, c, oc) == nil {
						n++
					}
				}
				pass(time.Second)
				<-r.Done()
				require.Equal(t, n, oc.count())
			})
		})
	}
}

// Covers: E-47
func TestACompletionMayTrySubmit(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{Window: 1, Queue: 1}}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		left := 20
		oc.then = func(fdengine.Command, error) {
			if left--; left > 0 {
				require.NoError(t, r.TrySubmit(scripted.Echo(fmt.Sprint("n", left)), oc), "its own room is free")
			}
		}
		submitAll(t, r, oc, scripted.Echo("first"))
		pass(time.Second)
		require.Equal(t, 20, oc.count())
	})
}

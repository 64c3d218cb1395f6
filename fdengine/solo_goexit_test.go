package fdengine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
)

// errGone is what attempt says when the call did not return.
var errGone = errExited

// attempt calls Do on a goroutine of its own, which the command may end.
func (r *rig) attempt(c fdengine.Command) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := errGone
		defer func() { done <- err }()
		err = r.Do(bg, c)
	}()
	return done
}

// A lone caller's decoder ended its goroutine. Callers whose replies came in the same read were to be woken by it, one
// by the other, and slept for ever.
//
// Covers: S4-14, E-3, E-22
func TestADecoderThatFailsInALoneCallCostsNobodyElse(t *testing.T) {
	for _, class := range []carry.Class{carry.NoRetry, carry.Replay} {
		misbehave(t, func(t *testing.T, deed func()) {
			loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
				r.server.FreezeReplies(true)
				bad := scripted.Echo("bad")
				bad.Traits.Class = class
				bad.OnDecode = func(fdengine.Reply) { deed() }
				done := r.attempt(bad)
				synctest.Wait()
				others, o := echoes("o", 8, carry.NoRetry), &outcomes{}
				solo := false
				var told []<-chan error
				for i, c := range others {
					c.OnDecode = func(fdengine.Reply) { solo = solo || alone() }
					if i%2 == 0 {
						told = append(told, r.later(bg, c))
					} else {
						submitAll(t, r, o, c)
					}
					synctest.Wait()
				}
				start := time.Now()
				r.server.FreezeReplies(false)
				if err := <-done; err != errGone {
					failsAs(t, err, carry.Answered)
					var p *panics.Error
					require.ErrorAs(t, err, &p)
				}
				for _, ch := range told {
					within(t, time.Minute, func() { require.NoError(t, <-ch) })
				}
				synctest.Wait()
				require.Zero(t, time.Since(start))
				for _, c := range others {
					require.Equal(t, c.Token, c.Reply)
				}
				require.False(t, solo, "a lone caller runs nobody else's code")
				pass(time.Second)
				require.Equal(t, 1, r.server.Executions("bad"))
				require.Equal(t, uint64(1), r.Stats().Panics)
				require.Equal(t, 1, r.leaser.Counts().Removes, "retired")
				require.NoError(t, r.Do(bg, scripted.Echo("after")))
				writes, _ := l.serves()
				require.Equal(t, 1, writes)
			})
		})
	}
}

// What else fails on a lone caller's goroutine costs the connection. Its command may go again, for nobody: others that are
// answered with it must not wait for it.
//
// Covers: S4-14, E-3, E-5
func TestForeignCodeThatFailsInALoneCallCutsTheConnectionAndHurtsNobodyElse(t *testing.T) {
	for _, where := range []string{"Next", "Verdict", "own verdict", "Write", "behind Write", "Read"} {
		for class, name := range map[carry.Class]string{carry.NoRetry: "no retry", carry.Replay: "replay"} {
			t.Run(where+" "+name, func(t *testing.T) {
				misbehave(t, func(t *testing.T, deed func()) { failsAt(t, where, class, deed) })
			})
		}
	}
}

func failsAt(t *testing.T, where string, class carry.Class, deed func()) {
	arm, fall := once(deed)
	at := func(place string) func() {
		if place == where {
			return fall
		}
		return nil
	}
	s := script{}
	if where == "Verdict" {
		s["bad"] = first(1, scripted.Refuse("LOADING soon"))
	}
	o := fdengine.Options{Protocol: judged(at("Next"), at("Verdict"))}
	loneBubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig, l *looks) {
		l.onWrite, l.behind, l.onRead = at("Write"), at("behind Write"), at("Read")
		bad := scripted.Echo("bad")
		bad.Traits.Class = class
		var cmd fdengine.Command = bad
		if where == "own verdict" {
			judge := &scripted.JudgingCmd{Judge: func([]byte, bool) fdengine.Verdict { fall(); return fdengine.Verdict{} }}
			judge.Token, judge.Traits = "bad", bad.Traits
			bad, cmd = &judge.Cmd, judge
		}
		arm()
		r.server.FreezeReplies(true)
		done := r.attempt(cmd)
		synctest.Wait()
		var told []<-chan error
		others := echoes("o", 4, carry.Replay)
		for _, c := range others {
			told = append(told, r.later(bg, c))
			synctest.Wait()
		}
		start := time.Now()
		r.server.FreezeReplies(false)
		for i, ch := range told {
			require.NoError(t, <-ch)
			require.Equal(t, others[i].Token, others[i].Reply)
		}
		require.Less(t, time.Since(start), 2*time.Second)
		pass(2 * time.Second)
		err := <-done
		runs := r.server.Executions("bad")
		switch {
		case err == errGone:
		case class == carry.Replay:
			require.NoError(t, err)
			require.Equal(t, "bad", bad.Reply)
		default:
			failsAs(t, err, carry.MaybeExecuted)
		}
		require.LessOrEqual(t, runs, 1+b2i(class == carry.Replay))
		require.Equal(t, uint64(1), r.Stats().Panics)
		require.NoError(t, r.Do(bg, scripted.Echo("after")))
		writes, _ := l.serves()
		require.NotZero(t, writes)
	})
}

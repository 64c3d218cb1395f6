package fdengine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// What a fresh reader broke in a Stream whose head was refused and is to go again.

// A later command of a held Stream ran, and its reply was too large to read. The cut forgot that it ran: the refused
// one was sent again behind it, also when the caller of the large one had left.
//
// Covers: E-44, E-36, E-2
func TestAReplyTooLargeInAHeldStreamIsAnExecution(t *testing.T) {
	for _, ghost := range []bool{false, true} {
		s := script{
			"a": first(1, loading),
			"b": first(1, scripted.Reply("$9000\r\n"+strings.Repeat("x", 9000)+"\r\n")),
		}
		o := fdengine.Options{MaxReply: 4096}
		bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
			st, oc := r.Stream(), &outcomes{}
			a, b := scripted.ReplayEcho("a"), scripted.ReplayEcho("b")
			ctx, leave := context.WithCancel(bg)
			defer leave()
			left := make(chan error, 1)
			r.together(func() {
				submitAll(t, st, oc, a)
				if !ghost {
					submitAll(t, st, oc, b)
					return
				}
				go func() { left <- st.Do(ctx, b) }()
				synctest.Wait()
				leave()
			})
			pass(time.Second)
			if ghost {
				failsAs(t, <-left, carry.MaybeExecuted, context.Canceled)
			} else {
				failed(t, oc, b, carry.Answered, fdengine.ErrTooLarge)
			}
			var refusal *scripted.ServerError
			require.ErrorAs(t, settledOf(t, oc, a), &refusal)
			require.Equal(t, []string{"b"}, r.server.Order(), "a behind b would be an overtaking")
			require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
		})
	}
}

// A later command of a held Stream was refused in a way that leaves open whether it ran. It was counted with those
// that certainly had not, and the whole went again: a after b.
//
// Covers: E-44, E-2
func TestADoubtfulRefusalInAHeldStreamBreaksIt(t *testing.T) {
	s := script{"a": first(1, loading), "b": first(1, scripted.Reply("-UNSURE\r\n"))} // b runs
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		a := scripted.ReplayEcho("a")
		b := &scripted.JudgingCmd{Cmd: *scripted.ReplayEcho("b")}
		b.Judge = func(frames []byte, _ bool) (v fdengine.Verdict) {
			if frames[0] == '-' {
				v.Then, v.Ran = fdengine.RetryHere, fdengine.RanMaybe
			}
			return v
		}
		r.together(func() {
			submitAll(t, st, o, a)
			require.NoError(t, st.Submit(bg, b, o))
		})
		pass(2 * time.Second)
		var refusal *scripted.ServerError
		require.ErrorAs(t, settledOf(t, o, a), &refusal)
		require.ErrorAs(t, settledOf(t, o, b), &refusal)
		require.Equal(t, "UNSURE", refusal.Line)
		require.Equal(t, []string{"b"}, r.server.Order())
		require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
	})
}

// The server asked for ten seconds with the first refusal and for nothing with the last. The last word alone
// counted, and the Stream was back within milliseconds.
//
// Covers: E-44
func TestTheLongestPauseOfAHeldStreamCounts(t *testing.T) {
	long, short := scripted.Refuse("LOADING retry=10000"), scripted.Refuse("LOADING retry=20")
	for _, acts := range [][]scripted.Action{{long, short}, {short, long}} {
		s := script{"a": first(1, acts[0]), "b": first(1, acts[1])}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			st, o := r.Stream(), &outcomes{}
			a, b := scripted.Echo("a"), scripted.Echo("b")
			r.together(func() { submitAll(t, st, o, a, b) })
			start := time.Now()
			require.NoError(t, st.Flush(bg))
			require.GreaterOrEqual(t, time.Since(start), 9900*time.Millisecond)
			require.Less(t, time.Since(start), 11*time.Second)
			ok(t, o, a, b)
			require.Equal(t, []string{"a", "b"}, r.server.Order())
		})
	}
}

// A refusal was to go again, could not, and became the answer. The attempt to send it again had already counted a
// send, and the sample said 2 where the command was told 1.
//
// Covers: E-34
func TestASampleCountsTheSendsThatWere(t *testing.T) {
	ev := &events{}
	s := script{"a": first(1, loading)}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Observer: ev}}, func(t *testing.T, r *rig) {
		st, o := r.Stream(), &outcomes{}
		a, quiet := scripted.Echo("a"), scripted.Echo("quiet")
		quiet.Traits.Frames = fdengine.NoReply // it ran behind a: a may not go again
		r.together(func() { submitAll(t, st, o, a, quiet) })
		pass(time.Second)
		var refusal *scripted.ServerError
		require.ErrorAs(t, settledOf(t, o, a), &refusal)
		require.Equal(t, 1, a.Sends)
		seen := 0
		for _, x := range ev.samples() {
			if x.Err != nil && errors.As(x.Err, &refusal) {
				seen++
				require.Equal(t, 1, x.Sends)
			}
		}
		require.Equal(t, 1, seen)
	})
}

// A Flush that gave up left its channel in the list until the Stream was empty: who polled a busy Stream with short
// contexts filled the memory.
func TestAFlushThatGivesUpLeavesNothing(t *testing.T) {
	s := script{"a": always(scripted.Delay(time.Minute))}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{ReadTimeout: -1}}, func(t *testing.T, r *rig) {
		st, o, a := r.Stream(), &outcomes{}, scripted.Echo("a")
		submitAll(t, st, o, a)
		stays := make(chan error, 1)
		go func() { stays <- st.Flush(bg) }()
		synctest.Wait()
		for range 100 {
			ctx, cancel := context.WithTimeout(bg, time.Millisecond)
			require.ErrorIs(t, st.Flush(ctx), context.DeadlineExceeded)
			cancel()
		}
		require.Equal(t, 1, st.Flushing())
		require.NoError(t, <-stays, "the others are told all the same")
		require.Zero(t, st.Flushing())
		ok(t, o, a)
	})
}

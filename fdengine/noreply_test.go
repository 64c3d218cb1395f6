package fdengine_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// quiet is a command the server does not answer.
func quiet(token string) *scripted.Cmd {
	return &scripted.Cmd{Token: token, Traits: fdengine.Spec{Class: carry.Replay, Frames: fdengine.NoReply}}
}

// Covers: S0-44, E-1
func TestACommandWithoutReplyTakesNoSlotAndSettlesWhenItIsSent(t *testing.T) {
	s := script{}
	for _, tok := range []string{"q0", "q1", "q2"} {
		s[tok] = always(scripted.Action{NoReply: true})
	}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Window: 1}}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		a, b := scripted.Echo("a"), scripted.Echo("b")
		q0, q1, q2 := quiet("q0"), quiet("q1"), quiet("q2")
		r.together(func() {
			submitAll(t, r, oc, q0, a, q1, q2, b)
			synctest.Wait()
			require.NoError(t, settledOf(t, oc, q0), "no answer was needed")
			require.Equal(t, 1, r.Stats().InFlightCommands)
		})
		pass(time.Second)
		ok(t, oc, a, b)
		for _, q := range []*scripted.Cmd{q0, q1, q2} {
			require.NoError(t, settledOf(t, oc, q))
			require.Zero(t, q.Decodes)
		}
		require.Equal(t, []string{"q0", "a", "q1", "q2", "b"}, r.server.Order())
		require.NoError(t, r.Do(bg, quiet("q0")), "also by Do")
	})
}

// Covers: E-6
func TestACommandWithoutReplyIsNeverSentAgainOnceItWasAccepted(t *testing.T) {
	for _, short := range []bool{false, true} {
		s := script{"q": always(scripted.Action{NoReply: true})}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Ping(bg))
			enc, _ := quiet("q").AppendRequest(nil)
			n := int64(len(enc))
			if short {
				n--
			}
			r.conn(0).Out().CutAfter(n, memnet.Cut{})
			require.NoError(t, r.Do(bg, quiet("q")))
			pass(time.Second)
			require.Equal(t, 1, r.server.Executions("q"))
			want := 1
			if short {
				want = 2
			}
			require.Equal(t, want, r.server.Conns())
		})
	}
}

// Covers: E-19
func TestACallerWhoLeavesALentConnectionCutsIt(t *testing.T) {
	s := script{"block": always(scripted.Delay(time.Hour))}
	o := fdengine.Options{Window: 1, ReadTimeout: -1, CutOnCancel: true}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		failsAs(t, r.Do(ctx, scripted.Echo("block")), carry.MaybeExecuted, context.DeadlineExceeded)
		synctest.Wait()
		require.Equal(t, uint64(1), r.Stats().Cuts)
		require.Equal(t, 1, r.leaser.Counts().Removes)
		require.NoError(t, r.Do(bg, scripted.Echo("next")))
		require.Equal(t, 2, r.server.Conns())
		// One that leaves before it was sent costs nothing.
		ctx, cancel2 := context.WithCancel(bg)
		cancel2()
		require.Error(t, r.Do(ctx, scripted.Echo("x")))
		require.Equal(t, uint64(1), r.Stats().Cuts)
	})
}

// heap is the live heap after collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Covers: E-40, C28
func TestMemoryReturnsAfterABurst(t *testing.T) {
	bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
		// One that stays keeps the log from being empty.
		require.NoError(t, r.Submit(bg, scripted.Echo("stay"), discard{}))
		base := heap()
		for i := range 700 {
			c := &scripted.Cmd{Token: itoa(i), Args: []string{strings.Repeat("x", 10<<10)}}
			c.Traits.Timeout = time.Second
			require.NoError(t, r.Submit(bg, c, discard{}))
		}
		require.Greater(t, heap()-base, int64(5<<20))
		pass(2 * time.Second)
		require.Equal(t, 1, r.Stats().QueueCommands)
		require.Less(t, heap()-base, int64(2<<20))
	})
}

// Covers: E-40, C28
func TestACommandThatIsDoneIsNotReachableThoughItsBlockIs(t *testing.T) {
	s := script{"slow": always(scripted.Stall())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		var done []weak.Pointer[scripted.Cmd]
		r.together(func() {
			for i := range 10 {
				c := scripted.Echo(itoa(i))
				done = append(done, weak.Make(c))
				require.NoError(t, r.Submit(bg, c, discard{}))
			}
			require.NoError(t, r.Submit(bg, scripted.Echo("slow"), discard{}))
		})
		pass(time.Second)
		require.Equal(t, 1, r.Stats().InFlightCommands)
		heap()
		for i, p := range done {
			require.Nil(t, p.Value(), "command %d", i)
		}
	})
}

// discard is a Completion that keeps nothing.
type discard struct{}

func (discard) Complete(fdengine.Command, error) {}

// Covers: E-40, C28
func TestACancelStormWithoutAConnectionGrowsNothing(t *testing.T) {
	bubble(t, setup{NoStart: true}, func(t *testing.T, r *rig) {
		storm := func(n int) {
			for range n {
				ctx, cancel := context.WithCancel(bg)
				res := r.later(ctx, &scripted.Cmd{Token: "x", Args: []string{strings.Repeat("x", 8<<10)}})
				synctest.Wait()
				cancel()
				failsAs(t, <-res, carry.NotSent, context.Canceled)
			}
		}
		// One that stays keeps the log from being empty.
		stay := r.later(bg, scripted.Echo("stay"))
		storm(100)
		base, routines := heap(), runtime.NumGoroutine()
		storm(2000)
		require.Less(t, heap()-base, int64(4<<20), "16 MiB went through")
		require.Less(t, runtime.NumGoroutine()-routines, 10)
		require.Equal(t, 1, r.Stats().QueueCommands)
		r.listen()
		require.NoError(t, <-stay)
	})
}

// Covers: C28
func TestABufferThatGrewForABigReplyShrinksAgain(t *testing.T) {
	const size = 8 << 20
	s := script{"big": always(scripted.Reply("$8388608\r\n" + strings.Repeat("x", size) + "\r\n"))}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		for _, c := range echoes("c", 10, carry.NoRetry) {
			require.NoError(t, r.Do(bg, c))
		}
		base := heap()
		big := &lengthCmd{}
		require.NoError(t, r.Do(bg, big))
		require.Greater(t, big.n, size)
		for _, c := range echoes("d", 10, carry.NoRetry) {
			require.NoError(t, r.Do(bg, c))
		}
		require.Greater(t, heap()-base, int64(size), "the server's buffer")
		require.NoError(t, r.server.Close())
		r.server = scripted.New(scripted.Options{})
		r.listen()
		require.NoError(t, r.Do(bg, scripted.Echo("e")))
		require.Less(t, heap()-base, int64(1<<20), "and no other")
	})
}

// lengthCmd looks at the length of its reply only.
type lengthCmd struct{ n int }

func (*lengthCmd) AppendRequest(dst []byte) ([]byte, error) {
	return scripted.AppendRequest(dst, "GET", "big"), nil
}
func (c *lengthCmd) DecodeReply(r fdengine.Reply) error { c.n = len(r.Frame); return nil }

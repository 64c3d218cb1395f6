package lanes_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// Covers: E-32
func TestABatchOverSeveralLanesKeepsTheOrderOfErrsAndOfEachKey(t *testing.T) {
	refused := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Token()[len(req.Token())-1] == '7' {
			return scripted.Refuse("ERR " + req.Token())
		}
		return scripted.Action{}
	}}
	bubble(t, setup{n: 3, server: refused}, func(t *testing.T, r *rig) {
		for round, given := range []bool{true, false, true} {
			var cmds []fdengine.Command
			want := [3][]string{}
			fail, kept := "", len(r.order(0))
			for i := range 100 {
				token := itoa(round) + "." + itoa(i)
				key := "k" + itoa(i%10)
				cmds = append(cmds, of(key, token))
				if i%10 == 7 {
					if fail == "" {
						fail = token
					}
					continue
				}
				lane := r.laneOf(key)
				want[lane] = append(want[lane], token)
			}
			var errs []error
			if given {
				errs = slices.Repeat([]error{errors.New("stale")}, len(cmds))
			}
			err := r.DoBatch(bg, cmds, errs)
			require.EqualError(t, err, "ERR "+fail)
			for i, err := range errs {
				token := itoa(round) + "." + itoa(i)
				if i%10 == 7 {
					require.EqualError(t, err, "ERR "+token)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, token, cmds[i].(keyed).Reply)
			}
			require.Equal(t, want[0], r.order(0)[kept:])
			for lane := range 3 {
				got := r.order(lane)
				require.Equal(t, want[lane], got[len(got)-len(want[lane]):])
			}
		}
	})
}

func TestWhatHasNoKeyInABatchStaysTogetherInOrder(t *testing.T) {
	bubble(t, setup{n: 3}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		r.connect(3)
		r.freeze(true)
		o := &outcomes{}
		for i := range 3 { // lane 2 is the one with the fewest
			require.NoError(t, r.Submit(bg, of(keys[i%2], "x"+itoa(i)), o))
		}
		var cmds []fdengine.Command
		var want []string
		for i := range 50 {
			cmds = append(cmds, scripted.Echo("free"+itoa(i)), of(keys[i%2], "b"+itoa(i)))
			want = append(want, "free"+itoa(i))
		}
		done := make(chan error, 1)
		go func() { done <- r.DoBatch(bg, cmds, nil) }()
		synctest.Wait()
		r.freeze(false)
		require.NoError(t, <-done)
		require.Equal(t, want, r.order(2))
	})
}

func TestWhatHasNoKeyInABatchStaysTogetherThoughTheLoadChanges(t *testing.T) {
	bubble(t, setup{n: 2}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		r.connect(2)
		r.freeze(true)
		o := &outcomes{}
		busy := of(keys[1], "busy")
		busy.on = func() {
			for i := range 3 {
				require.NoError(t, r.Submit(bg, of(keys[0], "x"+itoa(i)), o))
			}
		}
		done := make(chan error, 1)
		go func() { done <- r.DoBatch(bg, []fdengine.Command{scripted.Echo("a"), busy, scripted.Echo("b")}, nil) }()
		synctest.Wait()
		r.freeze(false)
		require.NoError(t, <-done)
		require.Equal(t, []string{"x0", "x1", "x2", "a", "b"}, r.order(0))
	})
}

// The memory for outcomes that the caller does not want was given to the next batch while it was in use.
func TestBatchesWithoutErrsDoNotGetEachOthersOutcomes(t *testing.T) {
	slow := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		switch req.Token() {
		case "slow":
			return scripted.Delay(time.Second)
		case "refused":
			return scripted.Refuse("ERR refused")
		}
		return scripted.Action{}
	}}
	bubble(t, setup{n: 2, server: slow}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		r.connect(2)
		done := make(chan error, 1)
		go func() { done <- r.DoBatch(bg, []fdengine.Command{of(keys[0], "fast"), of(keys[0], "slow")}, nil) }()
		synctest.Wait()
		require.Equal(t, "fast", r.order(0)[0])
		require.EqualError(t, r.DoBatch(bg, []fdengine.Command{of(keys[1], "refused"), of(keys[1], "z")}, nil), "ERR refused")
		require.NoError(t, <-done)
	})
}

func TestABatchReturnsWhenAllLanesAreDoneAndAfterItsCtxAtOnce(t *testing.T) {
	bubble(t, setup{n: 2}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		r.connect(2)
		cmds := []fdengine.Command{of(keys[0], "a"), of(keys[1], "b"), of(keys[0], "c")}
		r.servers[1].FreezeExec(true)
		done := make(chan error, 1)
		go func() { done <- r.DoBatch(bg, cmds, nil) }()
		pass(time.Second)
		require.Len(t, r.order(0), 2)
		require.Empty(t, done, "one lane has not answered")
		r.servers[1].FreezeExec(false)
		require.NoError(t, <-done)

		r.servers[1].FreezeExec(true)
		ctx, cancel := context.WithCancel(bg)
		errs := make([]error, 3)
		go func() {
			done <- r.DoBatch(ctx, []fdengine.Command{of(keys[0], "d"), of(keys[1], "e"), of(keys[0], "f")}, errs)
		}()
		synctest.Wait()
		cancel()
		err := <-done
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []error{nil, err, nil}, errs)
		require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(err))
		r.servers[1].FreezeExec(false)
		synctest.Wait()
		require.Equal(t, []string{"b", "e"}, r.order(1))
	})
}

func TestABatchOfTheWrongShapeIsRejectedAndAnEmptyOneIsDone(t *testing.T) {
	bubble(t, setup{n: 2}, func(t *testing.T, r *rig) {
		require.NoError(t, r.DoBatch(bg, nil, nil))
		err := r.DoBatch(bg, []fdengine.Command{scripted.Echo("a")}, make([]error, 2))
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		require.EqualValues(t, 1, r.Stats().Rejected)
		err = r.DoBatch(bg, []fdengine.Command{nil}, nil)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
	})
}

// On one engine a command whose code ends its goroutine ends the caller's. Over lanes it may end another one, and
// the caller must neither hang nor be told a success.
func TestACommandThatEndsItsGoroutineEndsTheCallerOfTheBatch(t *testing.T) {
	for _, at := range []int{0, 1} {
		bubble(t, setup{n: 2}, func(t *testing.T, r *rig) {
			keys := r.keysOf()
			returned := false
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_ = r.DoBatch(bg, []fdengine.Command{of(keys[0], "a"), of(keys[1], "b"), leaver{of(keys[at], "x")}}, nil)
				returned = true
			}()
			<-gone
			require.False(t, returned)
			synctest.Wait()
			// The load is counted out, and other batches work.
			require.NoError(t, r.DoBatch(bg, []fdengine.Command{of(keys[0], "c"), of(keys[1], "d")}, nil))
			require.NoError(t, r.Do(bg, scripted.Echo("free")))
			require.Contains(t, r.order(0), "free")
		})
	}
}

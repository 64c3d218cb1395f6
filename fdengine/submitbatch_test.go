package fdengine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// batchers are the two that take a batch without waiting for it.
func batchers(r *rig) map[string]func(context.Context, []fdengine.Command, fdengine.Completion) (int, error) {
	return map[string]func(context.Context, []fdengine.Command, fdengine.Completion) (int, error){
		"engine": r.SubmitBatch, "stream": r.Stream().SubmitBatch,
	}
}

// Covers: E-1, E-3, E-12
func TestASubmittedBatchGoesOutInOrderAndTellsEachOutcomeOnce(t *testing.T) {
	for name, o := range map[string]fdengine.Options{
		"room for all":  {},
		"tiny limits":   {Window: 3, Queue: 4},
		"tiny in bytes": {WindowBytes: 2000, QueueBytes: 2000},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
				var want []string
				for who, submit := range batchers(r) {
					cs := echoes(who, 2500, carry.NoRetry)
					cs[70].Args = []string{strings.Repeat("x", carry.BigRequest)}     // a block of its own
					cs[71].Args = []string{strings.Repeat("x", carry.BigRequest-100)} // and one that is just none
					told := &outcomes{}
					n, err := submit(bg, commands(cs), told)
					require.NoError(t, err)
					require.Equal(t, 2500, n)
					pass(time.Second)
					ok(t, told, cs...)
					want = append(want, tokens(cs)...)
				}
				require.Equal(t, want, r.server.Order())
				if o.Window > 0 {
					require.LessOrEqual(t, r.server.MaxUnanswered(), 3)
				}
			})
		})
	}
}

// Covers: E-3
func TestASubmittedBatchReturnsWithoutItsAnswers(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		r.server.FreezeReplies(true)
		g := fdengine.NewGroup()
		cs := echoes("c", 100, carry.NoRetry)
		cmds := commands(cs)
		g.Add(len(cmds))
		within(t, time.Second, func() {
			n, err := r.SubmitBatch(bg, cmds, g)
			require.NoError(t, err)
			require.Equal(t, 100, n)
		})
		clear(cmds) // the slice is the caller's again
		r.server.FreezeReplies(false)
		require.NoError(t, g.Wait(bg))
		for _, c := range cs {
			require.Equal(t, c.Token, c.Reply)
		}
	})
}

// What stands before a command that cannot be queued is under way, that command has the error, and nothing behind it was tried.
//
// Covers: E-4
func TestASubmittedBatchStopsAtTheCommandThatCannotBeQueuedAndGoesOnBehindIt(t *testing.T) {
	cannot := errors.New("cannot")
	for name, bad := range map[string]fdengine.Command{
		"encoder": &scripted.Cmd{Token: "bad", EncodeErr: cannot},
		"panic":   &scripted.Cmd{Token: "bad", EncodePanic: "boom"},
		"nil":     nil,
		"gate":    scripted.Echo("refused by the gate"),
		"large":   &scripted.Cmd{Token: "bad", Args: []string{strings.Repeat("x", 1<<20)}},
		"spec":    &scripted.Cmd{Token: "bad", Traits: fdengine.Spec{Frames: -5}},
	} {
		for _, at := range []int{0, 3, 1023, 1024, 1025, 1999} {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				o := fdengine.Options{MaxRequest: 1 << 19, Gate: func(_ context.Context, cmd fdengine.Command) error {
					if cmd == bad {
						return fmt.Errorf("gate: %w", cannot)
					}
					return nil
				}}
				if name != "gate" {
					o.Gate = nil
				}
				bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
					for who, submit := range batchers(r) {
						before := r.Stats()
						cs := echoes(who, 2000, carry.NoRetry)
						cmds := commands(cs)
						cmds[at] = bad
						told := &outcomes{}
						n, err := submit(bg, cmds, told)
						require.Equal(t, at, n)
						failsAs(t, err, carry.NotSent, fdengine.ErrNotSent)
						pass(time.Second)
						ok(t, told, cs[:at]...)
						require.Equal(t, at, told.count(), "nobody is told of what was not queued")
						require.Zero(t, r.server.Executions(cs[1999].Token))
						require.Equal(t, before.Rejected+1, r.Stats().Rejected)
						n, err = submit(bg, cmds[at+1:], told)
						require.NoError(t, err)
						require.Equal(t, 2000-at-1, n)
						pass(time.Second)
						ok(t, told, cs[at+1:]...)
						require.Equal(t, before.Accepted+1999, r.Stats().Accepted)
					}
				})
			})
		}
	}
}

// Covers: E-10, E-19
func TestASubmittedBatchWaitsForRoomAsLongAsItsContext(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{Window: 40, Queue: 60}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		before := r.Stats()
		r.server.FreezeReplies(true)
		told := &outcomes{}
		cs := echoes("c", 250, carry.NoRetry)
		cs[200].EncodeErr = errors.New("cannot, but there is one before it that did not get in")
		ctx, cancel := context.WithCancel(bg)
		type result struct {
			n   int
			err error
		}
		done := make(chan result, 1)
		go func() {
			n, err := r.SubmitBatch(ctx, commands(cs), told)
			done <- result{n, err}
		}()
		synctest.Wait()
		require.Empty(t, done)
		require.Equal(t, uint64(100), r.Stats().Accepted-before.Accepted)
		cancel()
		got := <-done
		failsAs(t, got.err, carry.NotSent, context.Canceled)
		require.Equal(t, 100, got.n, "what there was room for is queued")
		require.Equal(t, uint64(100), r.Stats().Accepted-before.Accepted)
		require.Equal(t, uint64(1), r.Stats().Rejected)
		r.server.FreezeReplies(false)
		pass(time.Second)
		ok(t, told, cs[:100]...)
		require.Equal(t, 100, told.count())
		require.Zero(t, r.server.Executions("c100"))
	})
}

// Covers: E-10
func TestASubmittedBatchWaitsBehindWhoCameBefore(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{Window: 10, Queue: 10}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReplies(true)
		told := &outcomes{}
		submitAll(t, r, told, echoes("first", 16, carry.NoRetry)...)
		before, small := echoes("before", 8, carry.NoRetry), echoes("small", 2, carry.NoRetry)
		var wg sync.WaitGroup
		for _, cs := range [][]*scripted.Cmd{before, small} { // the second one would fit
			wg.Go(func() {
				n, err := r.SubmitBatch(bg, commands(cs), told)
				require.NoError(t, err)
				require.Len(t, cs, n)
			})
			synctest.Wait()
		}
		require.Equal(t, uint64(1+16), r.Stats().Accepted, "the second one waits as well")
		r.server.FreezeReplies(false)
		wg.Wait()
		pass(time.Second)
		ok(t, told, append(before, small...)...)
	})
}

// A part that took all the room would wait until nothing is under way, at each round trip.
//
// Covers: E-12
func TestABatchThatIsLargerThanTheRoomKeepsTheWindowFull(t *testing.T) {
	for name, submit := range map[string]func(r *rig, cmds []fdengine.Command) error{
		"SubmitBatch": func(r *rig, cmds []fdengine.Command) error {
			_, err := r.SubmitBatch(bg, cmds, &outcomes{})
			return err
		},
		"DoBatch": func(r *rig, cmds []fdengine.Command) error { return r.DoBatch(bg, cmds, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
				if req.Token() == "c40" { // those before it have their answers, and it has none
					return scripted.Delay(time.Second)
				}
				return scripted.Action{}
			}}
			bubble(t, setup{Server: s, Engine: fdengine.Options{Window: 64, Queue: 1}}, func(t *testing.T, r *rig) {
				require.NoError(t, r.Ping(bg))
				done := make(chan error, 1)
				go func() { done <- submit(r, commands(echoes("c", 200, carry.NoRetry))) }()
				pass(500 * time.Millisecond)
				held := r.Stats().InFlightCommands + r.Stats().QueueCommands
				require.GreaterOrEqual(t, held, 48, "others follow when the first forty are answered")
				require.NoError(t, <-done)
				pass(2 * time.Second)
			})
		})
	}
}

// Big requests, small ones and both by turns, whose buffers go from one to the next: each arrives as it was.
//
// Covers: E-36
func TestBigRequestsOfSubmittedBatchesArriveAsTheyWere(t *testing.T) {
	load := func(token string, size int) string { return strings.Repeat(token+".", size/(len(token)+1)+1) }
	wrong := 0
	s := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		var round, i, size int
		if _, err := fmt.Sscanf(req.Token(), "r%d-%d-%d", &round, &i, &size); err == nil && (len(req.Args) < 3 || req.Args[2] != load(req.Token(), size)) {
			wrong++
		}
		return scripted.Action{}
	}}
	bubble(t, setup{Server: s}, func(t *testing.T, r *rig) {
		sizes := []int{10, carry.BigRequest - 40, carry.BigRequest, 20_000, 70_000, 300_000, 1000}
		for round := range 12 {
			var cs []*scripted.Cmd
			for i := range 40 {
				size := sizes[(i*(round%5+1)+round)%len(sizes)]
				if round > 8 {
					size = sizes[round%len(sizes)]
				}
				c := scripted.Echo(fmt.Sprintf("r%d-%d-%d", round, i, size))
				c.Args = []string{load(c.Token, size)}
				cs = append(cs, c)
			}
			if round%3 == 2 {
				require.NoError(t, r.DoBatch(bg, commands(cs), nil))
				continue
			}
			told := &outcomes{}
			n, err := r.SubmitBatch(bg, commands(cs), told)
			require.NoError(t, err)
			require.Len(t, cs, n)
			pass(time.Second)
			ok(t, told, cs...)
		}
	})
	require.Zero(t, wrong)
}

// Commands behind a big one that cannot be prepared share one buffer for trying.
//
// Covers: E-40
func TestABatchOfFailingCommandsBehindABigOneTakesNoMemoryForEach(t *testing.T) {
	for _, tc := range []struct{ size, failing int }{{1 << 20, 2000}, {16 << 20, 50}} {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			cs := echoes("c", 1+tc.failing, carry.NoRetry)
			cs[0].Args = []string{strings.Repeat("x", tc.size)}
			for _, c := range cs[1:] {
				c.EncodeErr = errors.New("cannot")
			}
			errs := make([]error, len(cs))
			took := allocated(func() { require.Error(t, r.DoBatch(bg, commands(cs), errs)) })
			require.NoError(t, errs[0])
			require.Less(t, took, tc.size*tc.failing/3, "of %d times %d bytes", tc.failing, tc.size)
		})
	}
}

// allocated is how many bytes f allocates, with all that goes on beside it.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// A big request between small ones costs no more memory than between big ones.
//
// Covers: E-40
func TestABigRequestOfABatchFindsItsBufferAmongSmallOnes(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		each := func(of int) int {
			const bigs = 100
			cs := echoes("c", bigs*of, carry.NoRetry)
			for i := 0; i < len(cs); i += of {
				cs[i].Args = []string{strings.Repeat("x", 200<<10)}
			}
			require.NoError(t, r.DoBatch(bg, commands(cs), nil))
			for _, c := range cs {
				c.Decodes = 0
			}
			return allocated(func() { require.NoError(t, r.DoBatch(bg, commands(cs), nil)) }) / bigs
		}
		alone := each(1)
		for _, of := range []int{2, 5} {
			require.Less(t, each(of), alone*3/2, "one in %d", of)
		}
	})
}

// Covers: E-10, E-12
func TestASubmittedBatchStaysWithinTheLimits(t *testing.T) {
	o := fdengine.Options{WindowBytes: 1000, QueueBytes: 1000}
	bubble(t, setup{NoStart: true, Engine: o}, func(t *testing.T, r *rig) {
		cs := echoes("c", 200, carry.NoRetry) // about 23 bytes each
		told := &outcomes{}
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := r.SubmitBatch(bg, commands(cs), told)
			require.NoError(t, err)
		})
		synctest.Wait()
		late := scripted.Echo("late")
		wg.Go(func() { require.NoError(t, r.Submit(bg, late, told)) })
		synctest.Wait()
		require.LessOrEqual(t, r.Stats().QueueBytes, 2000)
		require.Greater(t, r.Stats().QueueBytes, 1000)
		r.listen()
		wg.Wait()
		pass(time.Second)
		ok(t, told, append(cs, late)...)
	})
}

func TestTheCommandsOfASubmittedBatchSettleByTheDeadlineOfItsContextOrTheirOwn(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{ReadTimeout: -1}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		for who, submit := range batchers(r) {
			r.server.FreezeReplies(true)
			ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
			defer cancel()
			cs := echoes(who, 3, carry.NoRetry)
			cs[1].Traits.Timeout = time.Hour
			cs[2].Traits.Timeout = 100 * time.Millisecond // the last one: its failure breaks a stream
			start, took := time.Now(), map[fdengine.Command]time.Duration{}
			told := &outcomes{then: func(cmd fdengine.Command, _ error) { took[cmd] = time.Since(start) }}
			n, err := submit(ctx, commands(cs), told)
			require.NoError(t, err)
			require.Equal(t, 3, n)
			pass(time.Second)
			for i, by := range []time.Duration{500, 500, 100} {
				require.InDelta(t, by*time.Millisecond, took[cs[i]], float64(40*time.Millisecond), "%s %d", who, i)
				require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(settledOf(t, told, cs[i])))
			}
			r.server.FreezeReplies(false)
			pass(time.Second)
			// The time of the batch before is none of the next one.
			again := echoes(who+"again", 2, carry.NoRetry)
			r.server.FreezeReplies(true)
			n, err = r.SubmitBatch(bg, commands(again), told)
			require.NoError(t, err)
			require.Equal(t, 2, n)
			pass(time.Minute)
			r.server.FreezeReplies(false)
			pass(time.Second)
			ok(t, told, again...)
		}
	})
}

// Covers: E-4
func TestABatchThatNobodyCanBeToldOfOrThatComesTooLateIsRefused(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		s := r.Stream()
		submits := batchers(r)
		submits["closed stream"] = s.SubmitBatch
		cmds := commands(echoes("x", 3, carry.NoRetry))
		for _, submit := range submits {
			for _, done := range []fdengine.Completion{nil, (*fdengine.Group)(nil), new(fdengine.Group)} {
				n, err := submit(bg, cmds, done)
				require.Zero(t, n)
				failsAs(t, err, carry.NotSent)
			}
			n, err := submit(bg, nil, &outcomes{})
			require.NoError(t, err)
			require.Zero(t, n)
		}
		ended, cancel := context.WithCancel(bg)
		cancel()
		n, err := r.SubmitBatch(ended, cmds, &outcomes{})
		require.Zero(t, n)
		failsAs(t, err, carry.NotSent, context.Canceled)
		require.NoError(t, s.Close())
		n, err = s.SubmitBatch(bg, cmds, &outcomes{})
		require.Zero(t, n)
		failsAs(t, err, carry.NotSent, fdengine.ErrClosed)
		require.NoError(t, r.Close())
		for _, submit := range submits {
			n, err := submit(bg, cmds, &outcomes{})
			require.Zero(t, n)
			failsAs(t, err, carry.NotSent, fdengine.ErrClosed)
		}
		require.Zero(t, r.server.Executions("x0"))
	})
}

// Covers: E-14
func TestCloseEndsABatchThatWaitsForRoom(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{Window: 4, Queue: 4}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReplies(true)
		told := &outcomes{}
		var n int
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			n, err = r.SubmitBatch(bg, commands(echoes("c", 50, carry.NoRetry)), told)
		}()
		synctest.Wait()
		require.NoError(t, r.Close())
		<-done
		failsAs(t, err, carry.NotSent, fdengine.ErrClosed)
		require.Equal(t, 8, n)
		<-r.Done()
		require.Equal(t, 8, told.count())
	})
}

// Covers: E-2
func TestABatchInAStreamIsPartOfIt(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReplies(true)
		s, told := r.Stream(), &outcomes{}
		cs := echoes("c", 5, carry.NoRetry)
		bad := &scripted.Cmd{Token: "bad", EncodeErr: errors.New("cannot")}
		n, err := s.SubmitBatch(bg, append(commands(cs), bad, scripted.Echo("behind")), told)
		require.Equal(t, 5, n)
		require.ErrorIs(t, err, bad.EncodeErr)
		flushed := make(chan error, 1)
		go func() { flushed <- s.Flush(bg) }()
		synctest.Wait()
		require.Empty(t, flushed, "its answers are still to come")
		r.server.FreezeReplies(false)
		within(t, time.Minute, func() { require.NoError(t, <-flushed, "what was not queued is not waited for") })
		ok(t, told, cs...)

		r.server.FreezeReplies(true)
		lost := echoes("lost", 3, carry.NoRetry)
		n, err = s.SubmitBatch(bg, commands(lost), told)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		synctest.Wait()
		r.server.ResetConns()
		synctest.Wait()
		for _, c := range lost {
			failed(t, told, c, carry.MaybeExecuted)
		}
		n, err = s.SubmitBatch(bg, commands(echoes("late", 3, carry.NoRetry)), told)
		require.Zero(t, n)
		failsAs(t, err, carry.NotSent, fdengine.ErrStreamBroken)
		require.NoError(t, s.Reset())
		r.server.FreezeReplies(false)
		again := echoes("again", 3, carry.NoRetry)
		_, err = s.SubmitBatch(bg, commands(again), told)
		require.NoError(t, err)
		within(t, time.Minute, func() { require.NoError(t, s.Flush(bg)) })
		ok(t, told, again...)
	})
}

// A command that ends its caller's goroutine while it is encoded leaves nothing behind: those before it in its parcel were not
// queued, a Flush does not wait for them, and the engine goes on.
//
// Covers: S4-14, E-4
func TestAnEncoderThatEndsTheGoroutineOfABatchLeavesNothing(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		s := r.Stream()
		for who, submit := range map[string]func(context.Context, []fdengine.Command, fdengine.Completion) (int, error){
			"engine": r.SubmitBatch, "stream": s.SubmitBatch,
		} {
			cs := echoes(who, 1500, carry.NoRetry)
			cmds := commands(cs)
			cmds[1200] = &spoiled{Cmd: *scripted.Echo("bad"), deed: runtime.Goexit, at: "encode"}
			told := &outcomes{}
			within(t, time.Second, func() { _, _ = submit(bg, cmds, told) })
			pass(time.Second)
			ok(t, told, cs[:1024]...)
			require.Equal(t, 1024, told.count())
			within(t, time.Second, func() { require.NoError(t, s.Flush(bg)) })
		}
		require.NoError(t, r.Do(bg, scripted.Echo("after")))
	})
}

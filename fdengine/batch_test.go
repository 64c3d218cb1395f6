package fdengine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

func commands(cs []*scripted.Cmd) []fdengine.Command {
	out := make([]fdengine.Command, len(cs))
	for i, c := range cs {
		out[i] = c
	}
	return out
}

// Covers: E-12, E-1
func TestABatchGoesOutInOrderInPiecesAndWakesItsCallerOnce(t *testing.T) {
	for name, o := range map[string]fdengine.Options{
		"room for all":  {},
		"tiny limits":   {Window: 3, Queue: 4},
		"tiny in bytes": {WindowBytes: 2000, QueueBytes: 2000},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
				cs := echoes("c", 2500, carry.NoRetry)
				cs[70].Args = []string{strings.Repeat("x", carry.BigRequest)}     // a block of its own
				cs[71].Args = []string{strings.Repeat("x", carry.BigRequest-100)} // and one that is just none
				errs := make([]error, len(cs))
				require.NoError(t, r.DoBatch(bg, commands(cs), errs))
				for i, c := range cs {
					require.NoError(t, errs[i])
					require.Equal(t, c.Token, c.Reply)
				}
				require.Equal(t, tokens(cs), r.server.Order())
				if o.Window > 0 {
					require.LessOrEqual(t, r.server.MaxUnanswered(), 3)
				}
			})
		})
	}
}

// Covers: E-12, E-10
func TestABatchStaysWithinTheByteLimit(t *testing.T) {
	o := fdengine.Options{WindowBytes: 1000, QueueBytes: 1000}
	bubble(t, setup{NoStart: true, Engine: o}, func(t *testing.T, r *rig) {
		cs := echoes("c", 200, carry.NoRetry) // about 23 bytes each
		done := make(chan error, 1)
		go func() { done <- r.DoBatch(bg, commands(cs), nil) }()
		synctest.Wait()
		require.LessOrEqual(t, r.Stats().QueueBytes, 2000)
		require.Greater(t, r.Stats().QueueBytes, 1000)
		r.listen()
		require.NoError(t, <-done)
		require.Equal(t, tokens(cs), r.server.Order())
	})
}

// Covers: E-12
func TestABatchAndSinglesDoNotStarveEachOther(t *testing.T) {
	s := scripted.Options{Script: func(*scripted.ServerConn, scripted.Request) scripted.Action {
		return scripted.Delay(time.Millisecond)
	}}
	bubble(t, setup{Server: s, Engine: fdengine.Options{Window: 4, Queue: 16}}, func(t *testing.T, r *rig) {
		cs := echoes("b", 400, carry.NoRetry)
		var wg sync.WaitGroup
		wg.Go(func() { require.NoError(t, r.DoBatch(bg, commands(cs), nil)) })
		var singles atomic.Int64
		stop := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						require.NoError(t, r.Do(bg, scripted.Echo("s")))
						singles.Add(1)
					}
				}
			})
		}
		pass(5 * time.Second)
		require.Equal(t, 1, r.server.Executions("b399"), "the batch came through")
		close(stop)
		wg.Wait()
		require.Greater(t, singles.Load(), int64(200))
	})
}

// Covers: E-4, E-22
func TestEachCommandOfABatchStandsAlone(t *testing.T) {
	s := script{"e": always(scripted.Refuse("ERR no")), "d": always(scripted.DropAfter())}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		bad := &scripted.Cmd{Token: "bad", EncodeErr: errors.New("cannot")}
		boom := &scripted.Cmd{Token: "boom", EncodePanic: "boom"}
		e, d, p := scripted.Echo("e"), scripted.Echo("d"), scripted.ReplayEcho("p")
		own := scripted.Echo("own")
		own.DecodeErr = errors.New("not what I want")
		cs := []fdengine.Command{scripted.Echo("a"), bad, e, boom, own, nil, d, p}
		errs := make([]error, len(cs))
		first := r.DoBatch(bg, cs, errs)
		require.ErrorIs(t, first, errs[1])
		require.NoError(t, errs[0])
		failsAs(t, errs[1], carry.NotSent, bad.EncodeErr)
		failsAs(t, errs[2], carry.Answered)
		failsAs(t, errs[3], carry.NotSent)
		failsAs(t, errs[4], carry.Answered, own.DecodeErr)
		failsAs(t, errs[5], carry.NotSent)
		failsAs(t, errs[6], carry.MaybeExecuted)
		require.NoError(t, errs[7])
		require.NoError(t, r.DoBatch(bg, nil, nil))
		failsAs(t, r.DoBatch(bg, cs, make([]error, 1)), carry.NotSent)
	})
}

// Covers: E-19, E-12, E-4
func TestABatchCancelledInTheMiddle(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{Window: 4, Queue: 4}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		n := 0
		cs := echoes("c", 30, carry.NoRetry)
		for _, c := range cs {
			c.OnDecode = func(fdengine.Reply) {
				if n++; n == 5 {
					r.server.FreezeExec(true)
				}
			}
		}
		ctx, cancel := context.WithCancel(bg)
		errs := make([]error, len(cs))
		done := make(chan error)
		go func() { done <- r.DoBatch(ctx, commands(cs), errs) }()
		pass(time.Second)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		r.server.FreezeExec(false)
		pass(time.Second)
		counts := map[carry.Fate]int{}
		for i, err := range errs {
			fate := fdengine.FateOf(err)
			counts[fate]++
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			switch fate {
			case carry.NotSent:
				require.Zero(t, r.server.Executions(cs[i].Token))
			case carry.Answered:
				require.Equal(t, cs[i].Token, cs[i].Reply)
			}
		}
		require.GreaterOrEqual(t, counts[carry.Answered], 5)
		require.Greater(t, counts[carry.NotSent], 10)
		require.Equal(t, 30, counts[0]+counts[1]+counts[2])
		r.even()
		require.NoError(t, r.DoBatch(bg, commands(echoes("d", 30, carry.NoRetry)), nil), "the room is back")
	})
}

// Covers: E-43, E-42
func TestBatchesAndCancelsReuseNothingTooEarly(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 60 {
					ctx, cancel := context.WithCancel(bg)
					if i%3 == 0 {
						go cancel()
					}
					cs := echoes(fmt.Sprintf("t%d-%d-", g, i), 5, carry.NoRetry)
					errs := make([]error, 5)
					_ = r.DoBatch(ctx, commands(cs), errs)
					cancel()
					for k, err := range errs {
						if err == nil {
							require.Equal(t, cs[k].Token, cs[k].Reply)
						} else {
							require.ErrorIs(t, err, context.Canceled)
						}
						cs[k].Decodes++ // the race detector is the judge
					}
				}
			})
		}
		wg.Wait()
		pass(time.Second)
		require.Zero(t, r.Stats().Cuts)
	})
}

func seq(cs []*scripted.Cmd) iter.Seq[*scripted.Cmd] {
	return func(yield func(*scripted.Cmd) bool) {
		for _, c := range cs {
			if !yield(c) {
				return
			}
		}
	}
}

// Covers: E-1, E-10, E-4
func TestSubmitAllYieldsInOrderWithBoundedMemory(t *testing.T) {
	s := script{"c7": always(scripted.Refuse("ERR no"))}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		const n = 9000
		made, seen, most := 0, 0, 0
		in := func(yield func(*scripted.Cmd) bool) {
			for i := range n {
				made++
				most = max(most, made-seen)
				if !yield(scripted.Echo(fmt.Sprint("c", i))) {
					return
				}
			}
		}
		for c, err := range fdengine.SubmitAll(bg, r, in) {
			require.Equal(t, fmt.Sprint("c", seen), c.Token)
			seen++
			if c.Token == "c7" {
				var refusal *scripted.ServerError
				require.ErrorAs(t, err, &refusal)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, c.Token, c.Reply)
		}
		require.Equal(t, n, seen)
		require.LessOrEqual(t, most, 4097)
	})
}

// Covers: E-4, E-14
func TestSubmitAllReportsEachRejectionInItsPlace(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		cs := echoes("c", 10, carry.NoRetry)
		cs[3].EncodeErr = errors.New("cannot")
		ctx, cancel := context.WithCancel(bg)
		in := func(yield func(*scripted.Cmd) bool) {
			for i, c := range cs {
				if i == 6 {
					cancel()
				}
				if !yield(c) {
					return
				}
			}
		}
		i := 0
		for c, err := range fdengine.SubmitAll(ctx, r.Stream(), in) {
			require.Same(t, cs[i], c)
			switch {
			case i == 3:
				failsAs(t, err, carry.NotSent, c.EncodeErr)
			case i >= 6:
				failsAs(t, err, carry.NotSent, context.Canceled)
			default:
				require.NoError(t, err)
			}
			i++
		}
		require.Equal(t, 10, i)
	})
}

// Covers: E-13
func TestBreakingOutOfSubmitAllLeavesTheRestToTheEngine(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		n := 0
		for _, err := range fdengine.SubmitAll(bg, r, seq(echoes("c", 500, carry.NoRetry))) {
			require.NoError(t, err)
			if n++; n == 10 {
				break
			}
		}
		pass(time.Second)
		r.even()
		require.Equal(t, r.Stats().Accepted, uint64(r.server.Executed()))
	})
}

package cases_test

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
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// fits requires that a stalled engine takes exactly n commands, and leaves them there. prefix makes the tokens.
func fits(t *testing.T, r *rig, n int, prefix string) {
	t.Helper()
	for i := range 2 * n {
		err := r.try("fits", r.Engine, once(fmt.Sprintf("%s-%d", prefix, i)))
		if i < n {
			require.NoError(t, err, "number %d of %d", i+1, n)
		} else {
			fails(t, err, carry.NotSent, fdengine.ErrQueueFull)
		}
	}
}

// C27: commands that were refused or timed out while the server stalled were counted and never uncounted, until the
// engine took nothing any more; or they were uncounted twice.
// https://github.com/redis/lettuce/issues/764 https://github.com/redis/go-redis/pull/3625
// https://github.com/redis/go-redis/issues/3619 https://github.com/redis/go-redis/issues/3623
func TestCapacityIsTheSameAfterEveryStall(t *testing.T) {
	eo := fdengine.Options{Window: 4, Queue: 6, ReadTimeout: -1}
	t.Run("cycles", func(t *testing.T) {
		bubble(t, setup{Engine: eo}, func(t *testing.T, r *rig) {
			for cycle := range tally.Count(15, 50) {
				r.server.FreezeExec(true)
				ctx, cancel := context.WithCancel(bg)
				var leavers sync.WaitGroup
				for i := range 3 {
					c := once(fmt.Sprintf("c%d-leaves%d", cycle, i))
					leavers.Go(func() {
						if err := r.do(ctx, "leavers"+fmt.Sprint(i), r.Engine, c); err != nil && !errors.Is(err, context.Canceled) && !isMaybe(err) {
							t.Errorf("%v", err)
						}
					})
					synctest.Wait()
				}
				accepted := 3
				for i := range 97 {
					c := once(fmt.Sprintf("c%d-%d", cycle, i))
					if i < 5 {
						c.Traits.Timeout = 30 * time.Millisecond
					}
					if err := r.try("main", r.Engine, c); err == nil {
						accepted++
					} else {
						fails(t, err, carry.NotSent, fdengine.ErrQueueFull)
					}
				}
				require.Equal(t, 10, accepted, "cycle %d", cycle)
				pass(100 * time.Millisecond) // half of them time out
				cancel()
				leavers.Wait()
				if cycle%3 == 0 {
					r.last().Out().CutAfter(0, reset)
					tally.Cut(1)
				}
				r.server.FreezeExec(false)
				r.settled(time.Minute)
				pass(time.Second)
				even(t, r.Stats())
			}
			require.LessOrEqual(t, r.server.MaxUnanswered(), 4)
		})
	})
	t.Run("expiry at the moment of a hand-over", func(t *testing.T) {
		// Each reply takes a millisecond and frees a place; the waiters give up at such milliseconds.
		slow := func(_ int, c, _ *memnet.Conn) error { c.In().Delay(time.Millisecond); return nil }
		bubble(t, setup{Engine: eo, OnDial: slow}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			var wg sync.WaitGroup
			for g := range 40 {
				rnd := tally.Rand(uint64(2700 + g))
				wg.Go(func() {
					who := fmt.Sprintf("g%d", g)
					for i := range tally.Count(1000, 10_000) / 40 {
						ctx, cancel := context.WithTimeout(bg, time.Duration(rnd.IntN(12))*time.Millisecond)
						err := r.do(ctx, who, r.Engine, once(fmt.Sprintf("%s-%d", who, i)))
						cancel()
						if err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%v", err)
						}
					}
				})
			}
			wg.Wait()
			pass(time.Second)
			even(t, r.Stats())
			r.server.FreezeExec(true)
			fits(t, r, 10, "last")
			r.server.FreezeExec(false)
			r.settled(time.Minute)
			require.LessOrEqual(t, r.server.MaxUnanswered(), 4)
		})
	})
}

// C32: during an outage every new command was kept for replay, without a limit, until the memory was used up.
// https://github.com/redis/lettuce/issues/372 https://github.com/redis/lettuce/issues/813
// https://github.com/redis/lettuce/issues/466
func TestTheQueueIsBoundedWhileTheServerIsDown(t *testing.T) {
	for _, tc := range []struct {
		name       string
		size       int // bytes of an argument
		submits    int
		cmds, room int // limits of the queue, in commands and bytes
	}{
		{"1 KB, by count", 1 << 10, tally.Count(5000, 40_000), 2000, 64 << 20},
		{"1 KB, by bytes", 1 << 10, tally.Count(5000, 40_000), 65536, 1 << 20},
		{"1 MB, by bytes", 1 << 20, tally.Count(40, 500), 65536, tally.Count(6<<20, 16<<20)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eo := fdengine.Options{Window: 100, WindowBytes: tc.room, Queue: tc.cmds, QueueBytes: tc.room}
			s := scripted.Options{Script: always(scripted.Action{})}
			bubble(t, setup{Down: true, Engine: eo, Server: s}, func(t *testing.T, r *rig) {
				before := heap()
				payload := strings.Repeat("x", tc.size)
				var accepted []string
				refused := 0
				for i := range tc.submits {
					c := once(fmt.Sprintf("t%d", i))
					c.Args = []string{payload}
					if i%(tc.submits/20) == 0 {
						time.Sleep(400 * time.Millisecond) // the outage goes on meanwhile
					}
					switch err := r.try("main", r.Engine, c); {
					case err == nil:
						accepted = append(accepted, c.Token)
					default:
						fails(t, err, carry.NotSent, fdengine.ErrQueueFull)
						refused++
					}
				}
				// One that waits for room does so for as long as its ctx says.
				start := time.Now()
				ctx, cancel := context.WithTimeout(bg, time.Second)
				defer cancel()
				c := once("waits")
				c.Args = []string{payload}
				fails(t, r.book.submit(ctx, "main", r.Engine, c), carry.NotSent, context.DeadlineExceeded)
				took(t, start, time.Second, time.Second)
				late := once("admitted")
				late.Args = c.Args
				admitted := make(chan error, 1)
				go func() { admitted <- r.book.submit(bg, "main", r.Engine, late) }()
				synctest.Wait()

				require.Positive(t, refused)
				require.Greater(t, len(accepted), 10)
				st := r.Stats()
				require.LessOrEqual(t, st.QueueCommands, tc.cmds+100)
				require.LessOrEqual(t, st.QueueBytes, 2*tc.room)
				require.Less(t, heap(), before+uint64(2*tc.room)+50<<20)
				r.listen()
				require.NoError(t, <-admitted)
				r.settled(time.Minute)
				require.Equal(t, append(accepted, "admitted"), r.server.Order(), "once each, in order, and none that was refused")
				require.LessOrEqual(t, r.server.MaxUnanswered(), 100)
			})
		})
	}
}

// heap is the live heap in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

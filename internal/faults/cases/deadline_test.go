package cases_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// C19: the caller had seen a timeout and moved on, and the command ran much later.
// https://github.com/redis/ioredis/pull/2131 https://github.com/redis/ioredis/issues/2130
// https://github.com/redis/lettuce/issues/1426
func TestACommandThatTimedOutIsNotSentAfterwards(t *testing.T) {
	t.Run("never sent", func(t *testing.T) {
		for _, way := range []string{"ctx", "timeout", "submit"} {
			bubble(t, setup{Down: true}, func(t *testing.T, r *rig) {
				start := time.Now()
				time.AfterFunc(300*time.Millisecond, r.listen)
				x := once("X")
				ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
				defer cancel()
				var err error
				switch way {
				case "ctx":
					err = r.run(ctx, x)
				case "timeout":
					x.Traits.Timeout = 50 * time.Millisecond
					err = r.run(bg, x)
				case "submit":
					require.NoError(t, r.book.submit(ctx, "main", r.Engine, x))
					r.settled(time.Second)
					err = r.err(t, x)
				}
				fails(t, err, carry.NotSent, context.DeadlineExceeded)
				took(t, start, 50*time.Millisecond, 70*time.Millisecond)
				require.NoError(t, r.run(bg, once("y")))
				pass(time.Second)
				require.Equal(t, []string{"y"}, r.server.ConnTokens(0), way)
			})
		}
	})
	t.Run("sent once", func(t *testing.T) {
		s := script{"X": always(scripted.DropBefore())}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			r.server.FreezeExec(true)
			x, z := again("X", 3), again("Z", 3)
			x.Traits.Timeout = 50 * time.Millisecond
			r.submit(x, z)
			synctest.Wait()
			// The connection dies, and there is no other before X is late.
			r.mu.Lock()
			require.NoError(t, r.mu.l.Close())
			r.mu.Unlock()
			r.server.FreezeExec(false)
			pass(100 * time.Millisecond)
			r.failed(t, x, carry.MaybeExecuted, fdengine.ErrTimeout, context.DeadlineExceeded)
			r.listen()
			r.settled(time.Minute)
			r.ok(t, z)
			require.Equal(t, []string{"Z"}, r.server.ConnTokens(1))
			tally.Cut(1)
		})
	})
	t.Run("the connection dies just after the deadline", func(t *testing.T) {
		// The sweeper, which looks every 5 ms, has not told X yet that it is late, and the next connection is there at once.
		untold := 0
		for quarter := range 12 {
			eo := fdengine.Options{BackoffMin: 100 * time.Microsecond, BackoffMax: 100 * time.Microsecond}
			bubble(t, setup{Engine: eo}, func(t *testing.T, r *rig) {
				require.NoError(t, r.run(bg, once("warm")))
				r.server.FreezeExec(true)
				x, z := again("X", 3), again("Z", 3)
				ctx, cancel := context.WithTimeout(bg, 52*time.Millisecond)
				defer cancel()
				require.NoError(t, r.book.submit(ctx, "main", r.Engine, x))
				r.submit(z)
				time.Sleep(52*time.Millisecond + time.Duration(quarter)*time.Millisecond/4)
				if _, told := r.outcome(x); !told {
					untold++
				}
				r.last().Out().CutAfter(0, reset)
				r.server.FreezeExec(false)
				r.settled(time.Minute)
				r.failed(t, x, carry.MaybeExecuted, fdengine.ErrTimeout)
				r.ok(t, z)
				require.Equal(t, []string{"Z"}, r.server.ConnTokens(1), "%d/4 ms late", quarter)
			})
			tally.Cut(1)
		}
		require.Positive(t, untold)
	})
	t.Run("every second one of a backlog cancelled", func(t *testing.T) {
		n := tally.Count(1000, 10_000)
		bubble(t, setup{Down: true}, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(bg)
			var live []string
			var wg sync.WaitGroup
			for i := range n {
				c := once(fmt.Sprintf("t%d", i))
				if i%2 == 0 {
					live = append(live, c.Token)
					r.submit(c)
					continue
				}
				wg.Go(func() { fails(t, r.run(ctx, c), carry.NotSent, context.Canceled) })
				synctest.Wait() // in order
			}
			require.Equal(t, n, r.Stats().QueueCommands)
			cancel()
			wg.Wait()
			r.listen()
			r.settled(time.Minute)
			require.Equal(t, live, r.server.ConnTokens(0))
			require.Equal(t, live, r.server.Order())
		})
	})
}

// C21: a late cancel hit whoever was served by the connection next; a slow command with a long deadline made its
// neighbours overrun their short ones.
// https://github.com/lib/pq/pull/1000 https://github.com/mediocregopher/radix/issues/284
func TestADeadlineHitsItsOwnCommandOnly(t *testing.T) {
	t.Run("a short one and none", func(t *testing.T) {
		s := script{"A": always(scripted.Delay(120 * time.Millisecond)), "C": always(scripted.Delay(300 * time.Millisecond))}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			start := time.Now()
			b := once("B")
			ctx, cancel := context.WithTimeout(bg, 30*time.Millisecond)
			defer cancel()
			time.AfterFunc(time.Millisecond, func() { r.submit(b) })
			fails(t, r.run(ctx, once("A")), carry.MaybeExecuted, context.DeadlineExceeded)
			took(t, start, 30*time.Millisecond, 30*time.Millisecond)
			r.settled(time.Second)
			took(t, start, 120*time.Millisecond, 130*time.Millisecond)
			r.ok(t, b)
			require.NoError(t, r.run(bg, once("C")), "no deadline is left on the socket")
			require.Equal(t, 1, r.server.Conns())
		})
	})
	t.Run("behind a slow one", func(t *testing.T) {
		s := script{"head": always(scripted.Delay(2 * time.Second))}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			head := once("head")
			head.Traits.Timeout = 3 * time.Second
			r.submit(head)
			synctest.Wait()
			start := time.Now()
			ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
			defer cancel()
			fails(t, r.run(ctx, once("D")), carry.MaybeExecuted, context.DeadlineExceeded)
			took(t, start, 50*time.Millisecond, 50*time.Millisecond)
			e := once("E")
			e.Traits.Timeout = 50 * time.Millisecond
			fails(t, r.run(bg, e), carry.MaybeExecuted, fdengine.ErrTimeout)
			took(t, start, 100*time.Millisecond, 120*time.Millisecond)
			r.settled(time.Minute)
			r.ok(t, head)
			require.Equal(t, 1, r.server.Conns())
		})
	})
	t.Run("no ping behind a slow one", func(t *testing.T) {
		s := script{"slow": always(scripted.Delay(900 * time.Millisecond))}
		eo := fdengine.Options{PingEvery: 100 * time.Millisecond, ReadTimeout: time.Second}
		bubble(t, setup{Server: s.options(), Engine: eo}, func(t *testing.T, r *rig) {
			start := time.Now()
			require.NoError(t, r.run(bg, once("slow")))
			took(t, start, 900*time.Millisecond, 910*time.Millisecond)
			require.Len(t, r.server.Requests(0), 2, "the handshake's ping and the command")
			pass(350 * time.Millisecond)
			require.Greater(t, len(r.server.Requests(0)), 3, "while idle there are pings")
			require.Equal(t, 1, r.server.Conns())
		})
	})
}

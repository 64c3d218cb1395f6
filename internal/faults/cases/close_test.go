package cases_test

import (
	"context"
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

// C24: Close wanted a slot for a last command, or the pending replies, and hung with a full window and a silent peer;
// or it returned at once, and what had been accepted was dropped without a word.
// https://github.com/redis/rueidis/pull/1013 https://github.com/redis/rueidis/issues/108
// https://github.com/redis/hiredis/issues/109 https://github.com/nats-io/nats.go/issues/333
func TestCloseIsBoundedAndSaysWhatBecameOfEachCommand(t *testing.T) {
	small := fdengine.Options{Window: 10, Queue: 10, ReadTimeout: -1, WriteTimeout: -1}
	// shut runs Shutdown with d, which must not take much longer.
	shut := func(t *testing.T, r *rig, d time.Duration) (fdengine.Report, error) {
		ctx, cancel := context.WithTimeout(bg, d)
		defer cancel()
		start := time.Now()
		report, err := r.Shutdown(ctx)
		took(t, start, 0, d+200*time.Millisecond)
		synctest.Wait() // completions are told by another goroutine: a blocked one must not hold Shutdown up
		require.Zero(t, r.open(), "all are settled at that time")
		return report, err
	}
	t.Run("full window, silent server", func(t *testing.T) {
		s := scripted.Options{Script: always(scripted.Action{NoReply: true})}
		bubble(t, setup{Server: s, Engine: small}, func(t *testing.T, r *rig) {
			cmds := append(echoes(tokens("t", 15), once), echoes(tokens("r", 5), func(s string) *scripted.Cmd { return again(s, 3) })...)
			r.submit(commands(cmds)...)
			synctest.Wait()
			require.Equal(t, 10, r.Stats().InFlightCommands)
			report, err := shut(t, r, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, fdengine.Report{NotSent: 10, MaybeExecuted: 10}, report)
			for i, c := range cmds {
				if i < 10 {
					r.failed(t, c, carry.MaybeExecuted, fdengine.ErrClosed)
				} else {
					r.failed(t, c, carry.NotSent, fdengine.ErrClosed)
				}
			}
			<-r.Done()
			synctest.Wait()
			require.Zero(t, r.server.OpenConns(), "the server sees the end")
		})
	})
	t.Run("the writer is stuck", func(t *testing.T) {
		bubble(t, setup{Engine: small, Pipe: memnet.Options{ToServer: 1000}}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			r.server.FreezeReads(true)
			cmds := echoes(tokens("t", 10), once)
			for _, c := range cmds {
				c.Args = []string{string(make([]byte, 5000))}
			}
			r.submit(commands(cmds)...)
			synctest.Wait()
			queued := once("queued")
			r.submit(queued)
			_, err := shut(t, r, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			r.failed(t, cmds[0], carry.MaybeExecuted, fdengine.ErrClosed) // of a write that has not returned nobody knows
			for _, c := range cmds {
				require.ErrorIs(t, r.err(t, c), fdengine.ErrClosed)
			}
			r.failed(t, queued, carry.NotSent)
			r.server.FreezeReads(false)
			pass(time.Second)
			for _, c := range cmds {
				require.Zero(t, r.server.Executions(c.Token))
			}
		})
	})
	t.Run("healthy", func(t *testing.T) {
		s := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
			if len(req.Token())%7 == 0 {
				return scripted.Delay(time.Millisecond)
			}
			return scripted.Action{}
		}}
		bubble(t, setup{Server: s}, func(t *testing.T, r *rig) {
			cmds := echoes(tokens("token", 1000), once)
			r.submit(commands(cmds)...)
			report, err := shut(t, r, 5*time.Second)
			require.NoError(t, err)
			require.Zero(t, report.NotSent+report.MaybeExecuted)
			require.LessOrEqual(t, report.Answered, 1000)
			r.ok(t, commands(cmds)...)
			require.Equal(t, tokens("token", 1000), r.server.Order())
		})
	})
	t.Run("Close while reconnecting", func(t *testing.T) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			r.server.FreezeExec(true)
			had := again("had", 3)
			r.submit(had)
			synctest.Wait()
			r.down()
			synctest.Wait()
			waits, retries := once("waits"), again("retries", 3)
			r.submit(waits, retries)
			pass(2 * time.Second)
			start := time.Now()
			require.NoError(t, r.Close())
			synctest.Wait()
			require.Zero(t, r.open())
			took(t, start, 0, 0)
			<-r.Done()
			took(t, start, 0, 200*time.Millisecond)
			r.failed(t, had, carry.MaybeExecuted, fdengine.ErrClosed)
			r.failed(t, waits, carry.NotSent, fdengine.ErrClosed)
			r.failed(t, retries, carry.NotSent, fdengine.ErrClosed)
			dials := r.net.Dials()
			r.listen()
			pass(time.Minute)
			require.Equal(t, dials, r.net.Dials())
			tally.Cut(1)
		})
	})
	t.Run("Shutdown while reconnecting", func(t *testing.T) {
		bubble(t, setup{Down: true}, func(t *testing.T, r *rig) {
			cmds := echoes(tokens("t", 20), once)
			r.submit(commands(cmds)...)
			time.AfterFunc(time.Second, r.listen)
			report, err := shut(t, r, 10*time.Second)
			require.NoError(t, err)
			require.Equal(t, 20, report.Answered, "it may dial, within ctx")
			r.ok(t, commands(cmds)...)
		})
		bubble(t, setup{Down: true}, func(t *testing.T, r *rig) {
			c := once("t")
			r.submit(c)
			pass(time.Millisecond)
			report, err := shut(t, r, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 1, report.NotSent)
			r.failed(t, c, carry.NotSent, fdengine.ErrClosed)
		})
	})
	t.Run("many times", func(t *testing.T) {
		s := scripted.Options{Script: always(scripted.Action{NoReply: true})}
		bubble(t, setup{Server: s, Engine: small}, func(t *testing.T, r *rig) {
			r.submit(commands(echoes(tokens("t", 20), once))...)
			parked := make(chan error)
			go func() { parked <- r.do(bg, "parked", r.Engine, once("parked")) }() // it waits for room
			synctest.Wait()
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(bg, time.Second)
					defer cancel()
					if i%2 == 0 {
						_, _ = r.Shutdown(ctx)
					} else {
						pass1(500 * time.Millisecond)
						_ = r.Close()
					}
				})
			}
			within(t, 2*time.Second, wg.Wait)
			fails(t, <-parked, carry.NotSent, fdengine.ErrClosed)
			<-r.Done()
			start := time.Now()
			require.NoError(t, r.Close())
			_, err := r.Shutdown(bg)
			require.NoError(t, err)
			fails(t, r.run(bg, once("after1")), carry.NotSent, fdengine.ErrClosed)
			fails(t, r.book.submit(bg, "main", r.Engine, once("after2")), carry.NotSent, fdengine.ErrClosed)
			fails(t, r.try("main", r.Engine, once("after3")), carry.NotSent, fdengine.ErrClosed)
			took(t, start, 0, 0)
		})
	})
}

// pass1 lets time go by for one goroutine alone.
func pass1(d time.Duration) { <-time.After(d) }

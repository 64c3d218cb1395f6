package cases_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// files is how many descriptors this process has open; -1 where that cannot be seen.
func files() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(all)
}

// C28: an aborted batch left a goroutine that waited for a reply, a failed command its payload, a dead connection its
// buffers. That no goroutine is left after Close is checked for the whole package.
// https://github.com/redis/rueidis/issues/416 https://github.com/redis/rueidis/issues/364
// https://github.com/redis/go-redis/issues/3931
func TestNothingIsLeftOfWhatWasAbortedFailedOrDisconnected(t *testing.T) {
	t.Run("aborted", func(t *testing.T) {
		n, room := tally.Count(30, 2000), tally.Count(8<<20, 64<<20)
		eo := fdengine.Options{ReadTimeout: -1, WriteTimeout: -1, WindowBytes: room, QueueBytes: room}
		bubble(t, setup{Engine: eo}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			r.server.FreezeReads(true)
			payload := strings.Repeat("x", 1<<20)
			before, goroutines := heap(), runtime.NumGoroutine()
			for i := range n {
				c := again(fmt.Sprintf("t%d", i), 1)
				c.Verb, c.Args = "SET", []string{payload}
				ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
				if err := r.do(ctx, "main", r.Engine, c); err == nil {
					t.Error("a silent server answered")
				}
				cancel()
			}
			synctest.Wait()
			require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+8, "none per command")
			r.server.CloseConns()
			pass(time.Second)
			require.Zero(t, r.open())
			require.Less(t, heap(), before+50<<20)
			even(t, r.Stats())
			r.server.FreezeReads(false)
			require.NoError(t, r.run(bg, once("after")))
		})
	})
	t.Run("reconnects", func(t *testing.T) {
		s, addr, err := scripted.ListenTCP(scripted.Options{})
		require.NoError(t, err)
		e, b, l := tcpEngine(t, addr, fdengine.Options{BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond})
		round := func(i int) {
			for k := range 10 {
				c := again(fmt.Sprintf("t%d-%d", i, k), 10)
				require.NoError(t, b.submit(bg, "main", e, c))
			}
			s.ResetConns()
			tally.Cut(1)
			b.wait()
		}
		n := tally.Count(100, 1000)
		for i := range n / 10 {
			round(i)
		}
		before, goroutines, open := heap(), runtime.NumGoroutine(), files()
		for i := n / 10; i < n; i++ {
			round(i)
		}
		require.NoError(t, b.do(bg, "main", e, once("settle")))
		// What the book and the server's log keep of a round is a few KB; a buffer of a connection is 64.
		require.Less(t, heap(), before+uint64(n)*24<<10)
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		require.NoError(t, s.Until(ctx, func() bool { return s.OpenConns() == 1 }))
		await(t, func() bool { return runtime.NumGoroutine() <= goroutines+4 })
		if open >= 0 {
			await(t, func() bool { return files() <= open+4 })
		}
		tcpDone(t, e, b, l, s)
	})
	t.Run("a big reply", func(t *testing.T) {
		size := tally.Count(10, 100) << 20
		big := make([]byte, size)
		s := startRaw(t, 0, func(words []string) []byte {
			if words[0] == "GET" {
				return big
			}
			return []byte(words[1])
		})
		e, b, l := tcpEngine(t, s.addr(), fdengine.Options{ReadTimeout: 30 * time.Second})
		small := func(from int) {
			for i := range 20 {
				for _, err := range b.batch(bg, "main", e, commands(echoes(tokens(fmt.Sprintf("s%d-", from+i), 100), once))) {
					require.NoError(t, err)
				}
			}
		}
		small(0)
		before := heap()
		get := &sizeCmd{scripted.Cmd{Verb: "GET", Token: "big"}, 0}
		require.NoError(t, b.do(bg, "main", e, get))
		require.Equal(t, len(fmt.Sprintf("$%d\r\n\r\n", size))+size, get.size)
		small(10_000)
		require.Less(t, heap(), before+4<<20, "the buffer of the big reply is not kept")
		require.Zero(t, e.Stats().Cuts)
		s.done(t, e, b, l)
	})
}

// sizeCmd keeps the size of its reply and nothing else of it.
type sizeCmd struct {
	scripted.Cmd
	size int
}

func (c *sizeCmd) scripted() *scripted.Cmd { return &c.Cmd }

func (c *sizeCmd) DecodeReply(r fdengine.Reply) error {
	c.size, c.Reply = len(r.Frame), c.Token
	return nil
}

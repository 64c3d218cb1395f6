package cases_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/redis"
)

// C12: the server was slow, not dead: it ran the command while the client gave up on the reply and sent it again.
// https://github.com/redis/redis-rb/issues/668 https://github.com/redis/jedis/issues/3187
// https://github.com/etcd-io/etcd/pull/6691 https://github.com/etcd-io/jetcd/issues/1444
func TestALateReplyIsNotTakenForNotExecuted(t *testing.T) {
	slow := script{"n": late(300 * time.Millisecond)}
	eo := fdengine.Options{ReadTimeout: 50 * time.Millisecond}
	incr := func() *scripted.Cmd { return &scripted.Cmd{Verb: "INCR", Token: "n"} }
	t.Run("NoRetry, which is the default", func(t *testing.T) {
		bubble(t, setup{Server: slow.options(), Engine: eo}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			start := time.Now()
			fails(t, r.run(bg, incr()), carry.MaybeExecuted)
			took(t, start, 50*time.Millisecond, 70*time.Millisecond)
			require.NoError(t, r.run(bg, once("next")))
			pass(time.Second)
			require.Equal(t, 1, r.server.Executions("n"))
			require.Equal(t, []string{"warm", "n"}, r.server.ConnTokens(0), "the connection carries nothing more")
			require.Equal(t, 2, r.server.Conns())
		})
	})
	t.Run("two retries", func(t *testing.T) {
		bubble(t, setup{Server: slow.options(), Engine: eo}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			c := incr()
			c.Traits = fdengine.Spec{Class: carry.Replay, Budget: 2}
			err := r.run(bg, c)
			fails(t, err, carry.MaybeExecuted, fdengine.ErrBudget, fdengine.ErrPoisoned)
			var ce *fdengine.CallError
			require.ErrorAs(t, err, &ce)
			require.Equal(t, 3, ce.Sends, "the error says how often it was sent")
			pass(time.Second)
			require.Equal(t, 3, r.server.Executions("n"))
			require.NoError(t, r.run(bg, once("next")))
		})
	})
	t.Run("a retry in time", func(t *testing.T) {
		s := script{"n": func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
			if req.Attempt == 1 {
				return late(300*time.Millisecond)(c, req)
			}
			return scripted.Action{}
		}}
		bubble(t, setup{Server: s.options(), Engine: eo}, func(t *testing.T, r *rig) {
			c := incr()
			c.Traits = fdengine.Spec{Class: carry.Replay, Budget: 2}
			require.NoError(t, r.run(bg, c))
			require.Equal(t, 2, c.Sends, "and so does the reply")
			require.True(t, c.Maybe)
			pass(time.Second)
			require.Equal(t, 2, r.server.Executions("n"))
		})
	})
	t.Run("redis INCR, XADD, LPUSH and DEL by default", func(t *testing.T) {
		redisBubble(t, setup{Server: slow.options()}, redis.Options{Engine: eo}, func(t *testing.T, r *redisRig) {
			for i, c := range []*redis.Cmd{redis.Incr("n"), redis.XAdd("n", "*", "f", "v"), redis.LPush("n", "v"), redis.Del("n")} {
				fails(t, r.run(bg, c), carry.MaybeExecuted)
				pass(time.Second)
				require.Equal(t, i+1, r.server.Executions("n"))
			}
		})
	})
}

// C13: the retry budget was kept per session and not per command, so that some were sent too often and others too
// rarely.
// https://github.com/redis/go-redis/pull/3964 https://github.com/redis/go-redis/pull/4002
func TestTheRetryBudgetIsTheCommandsOwn(t *testing.T) {
	t.Run("progress of others does not refill it", func(t *testing.T) {
		s := script{"B": onConn(0, scripted.DropBefore()), "C": always(scripted.DropBefore())}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			a, b, c := again("A", 1), again("B", 1), again("C", 1)
			r.together(func() { r.submit(a, b, c) })
			r.settled(time.Minute)
			r.ok(t, a, b)
			r.failed(t, c, carry.MaybeExecuted, fdengine.ErrBudget)
			require.Equal(t, []string{"warm", "A", "B", "C"}, r.server.ConnTokens(0))
			require.Equal(t, []string{"B", "C"}, r.server.ConnTokens(1))
			require.NoError(t, r.run(bg, once("after")))
			require.Equal(t, []string{"after"}, r.server.ConnTokens(2))
			tally.Cut(2)
		})
	})
	t.Run("one that kills every connection takes none of its neighbours'", func(t *testing.T) {
		b := again("B", 3)
		var r *rig
		s := script{"A": func(c *scripted.ServerConn, _ scripted.Request) scripted.Action {
			if c.Index() == 3 {
				r.submit(b)
			}
			return scripted.DropBefore()
		}}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, rr *rig) {
			r = rr
			a := again("A", 3)
			r.submit(a)
			r.settled(time.Minute)
			fails(t, r.err(t, a), carry.MaybeExecuted, fdengine.ErrPoisoned, fdengine.ErrBudget)
			var ce *fdengine.CallError
			require.ErrorAs(t, r.err(t, a), &ce)
			require.Equal(t, 4, ce.Sends)
			r.ok(t, b)
			require.Equal(t, 1, b.Sends, "charged nothing")
			for i := range 4 {
				require.Equal(t, []string{"A"}, r.server.ConnTokens(i))
			}
			require.Equal(t, []string{"B"}, r.server.ConnTokens(4))
			tally.Cut(4)
		})
	})
	t.Run("mixed", func(t *testing.T) {
		s := script{"n1": onConn(0, scripted.DropBefore())}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			n1, zero, two, n2 := once("n1"), again("zero", -1), again("two", 2), once("n2")
			r.together(func() { r.submit(n1, zero, two, n2) })
			synctest.Wait()
			r.settled(time.Minute)
			r.failed(t, n1, carry.MaybeExecuted)
			r.failed(t, zero, carry.MaybeExecuted, fdengine.ErrBudget)
			r.ok(t, two)
			r.failed(t, n2, carry.MaybeExecuted)
			require.Equal(t, []string{"two"}, r.server.ConnTokens(1))
			tally.Cut(1)
		})
	})
}

package cases_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/redis"
)

// C37: a demoted primary keeps its connections open, so a client that reacts to I/O errors only is stuck on it; its
// re-dial used the address it had resolved first.
// https://github.com/redis/go-redis/issues/790 https://github.com/stormkit-io/stormkit-io/issues/535
// https://github.com/StackExchange/StackExchange.Redis/issues/1015 https://github.com/redis/lettuce/issues/144
func TestAReadOnlyServerIsLeftOnceAndTheNameIsResolvedAnew(t *testing.T) {
	// readOnly refuses writes once it is on; reads are served.
	readOnly := func(on *atomic.Bool, line string) scripted.Options {
		return scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
			if on.Load() && req.Verb() != "ECHO" {
				return scripted.Refuse(line)
			}
			return scripted.Action{}
		}}
	}
	// named runs f with a client that dials db.test, which leads to A until moved, then to B.
	named := func(t *testing.T, a, b scripted.Options, ro redis.Options, f func(t *testing.T, r *redisRig, b *scripted.Server, move func())) {
		var r *redisRig
		var moved atomic.Bool
		ro.Addr = "db.test:6379"
		ro.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != "db.test:6379" {
				t.Errorf("dialed %s, which nobody named", addr)
			}
			if moved.Load() {
				return r.net.Dial(ctx, network, "B")
			}
			return r.net.Dial(ctx, network, "server")
		}
		redisBubble(t, setup{Server: a}, ro, func(t *testing.T, rr *redisRig) {
			r = rr
			other := scripted.New(b)
			l, err := r.net.Listen("B")
			require.NoError(t, err)
			other.Serve(l)
			r.others = append(r.others, other)
			f(t, r, other, func() { moved.Store(true) })
		})
	}
	for _, line := range []string{readonly, "ERR " + readonly} {
		t.Run(strings.Fields(line)[0], func(t *testing.T) {
			var on atomic.Bool
			named(t, readOnly(&on, line), scripted.Options{}, redis.Options{}, func(t *testing.T, r *redisRig, b *scripted.Server, move func()) {
				require.NoError(t, r.run(bg, redis.Echo("warm")))
				on.Store(true)
				move()
				var writes, reads []*redis.Cmd
				r.together(func() {
					for i := range 1000 {
						c := redis.Set(fmt.Sprintf("t%d", i), "v").WithClass(carry.NoRetry)
						writes = append(writes, c)
						r.submit(c)
						r.frees(c)
						if i%100 == 99 {
							c := redis.Echo(fmt.Sprintf("read%d", i)).WithClass(carry.NoRetry)
							reads = append(reads, c)
							r.submit(c)
						}
					}
				})
				r.settled(time.Minute)
				r.ok(t, commands(writes)...)
				r.ok(t, commands(reads)...)
				require.Equal(t, 2, r.net.Dials(), "one more, not a thousand")
				require.EqualValues(t, 1, r.Stats().Engine.Retired)
				require.Equal(t, 1011, len(r.server.ConnTokens(0)), "what was in flight was drained")
				require.Equal(t, 1000, b.Executed())
			})
		})
	}
	t.Run("said by a script", func(t *testing.T) {
		// The script has run up to its write: it is not sent again, but the connection is left.
		var on atomic.Bool
		on.Store(true)
		said := "READONLY You can't write against a read only replica. script: a9c3, on @user_script:1."
		named(t, readOnly(&on, said), scripted.Options{}, redis.Options{}, func(t *testing.T, r *redisRig, b *scripted.Server, move func()) {
			require.NoError(t, r.run(bg, redis.Echo("warm")))
			move()
			err := r.run(bg, redis.NewScript("return 1").Eval([]string{"k"}))
			fails(t, err, carry.Answered)
			require.Equal(t, "READONLY", codeOf(err))
			require.NoError(t, r.run(bg, redis.Set("after", "v")))
			require.Equal(t, 1, b.Executions("after"))
			require.Equal(t, []string{"warm"}, r.server.Order())
			require.Equal(t, []string{"after"}, b.Order())
		})
	})
	t.Run("everywhere", func(t *testing.T) {
		var on atomic.Bool
		on.Store(true)
		ro := redis.Options{Engine: fdengine.Options{MaxRefusals: 5}}
		named(t, readOnly(&on, readonly), readOnly(&on, readonly), ro, func(t *testing.T, r *redisRig, _ *scripted.Server, move func()) {
			move()
			start := time.Now()
			err := r.run(bg, redis.Set("k", "v").WithClass(carry.NoRetry))
			fails(t, err, carry.Answered)
			require.Equal(t, "READONLY", codeOf(err), "the error says so")
			took(t, start, time.Millisecond, 5*time.Second)
			require.LessOrEqual(t, r.net.Dials(), 7)
		})
	})
}

// C38: after a restart the port is open while the data loads; the client took the server for healthy and passed the
// refusals on for minutes, or hammered it.
// https://github.com/redis/ioredis/issues/358 https://github.com/StackExchange/StackExchange.Redis/issues/1913
func TestALoadingServerIsWaitedForAndNotHammered(t *testing.T) {
	const loading = "LOADING Redis is loading the dataset in memory"
	restart := func(r *redisRig, d time.Duration) {
		r.server.RefuseAll(loading)
		r.server.CloseConns()
		time.AfterFunc(d, func() { r.server.RefuseAll("") })
	}
	t.Run("long deadlines", func(t *testing.T) {
		redisBubble(t, setup{}, redis.Options{}, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("before")))
			restart(r, 2*time.Second)
			start := time.Now()
			ctx, cancel := context.WithTimeout(bg, 5*time.Second)
			defer cancel()
			cmds := echoes(tokens("t", 100), redis.Incr)
			for _, c := range cmds {
				require.NoError(t, r.book.submit(ctx, "main", r.Client, c))
			}
			r.settled(time.Minute)
			took(t, start, 2*time.Second, 4*time.Second)
			r.ok(t, commands(cmds)...)
			require.Equal(t, tokens("t", 100), r.server.Order()[1:], "in order, one execution each")
			require.LessOrEqual(t, r.net.Dials(), 21)
			for i := 1; i < r.server.Conns()-1; i++ {
				require.Empty(t, r.server.ConnTokens(i), "no command before a handshake has passed")
			}
		})
	})
	t.Run("loading, but polite", func(t *testing.T) {
		// Real servers do answer HELLO, SELECT and CLIENT meanwhile. Only the PING at the end of the set-up tells.
		var on atomic.Bool
		s := scripted.Options{
			OnHandshake: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
				if on.Load() && req.Verb() == "PING" {
					return scripted.Refuse(loading)
				}
				return scripted.Action{}
			},
			Script: func(*scripted.ServerConn, scripted.Request) scripted.Action {
				if on.Load() {
					return scripted.Refuse(loading)
				}
				return scripted.Action{}
			},
		}
		redisBubble(t, setup{Server: s}, redis.Options{}, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("before")))
			on.Store(true)
			r.server.CloseConns()
			time.AfterFunc(2*time.Second, func() { on.Store(false) })
			cmds := echoes(tokens("t", 100), redis.Incr)
			r.submit(commands(cmds)...)
			r.settled(time.Minute)
			r.ok(t, commands(cmds)...)
			require.Equal(t, tokens("t", 100), r.server.Order()[1:])
			for i := 1; i < r.server.Conns()-1; i++ {
				require.Empty(t, r.server.ConnTokens(i), "no command before a handshake has passed")
			}
		})
	})
	t.Run("short deadlines", func(t *testing.T) {
		redisBubble(t, setup{}, redis.Options{}, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("before")))
			restart(r, 2*time.Second)
			start := time.Now()
			var cmds []*redis.Cmd
			for _, token := range tokens("t", 100) {
				cmds = append(cmds, redis.Incr(token).WithTimeout(500*time.Millisecond))
			}
			r.submit(commands(cmds)...)
			r.settled(time.Minute)
			took(t, start, 500*time.Millisecond, 520*time.Millisecond)
			for _, c := range cmds {
				r.failed(t, c, carry.NotSent, fdengine.ErrTimeout, context.DeadlineExceeded)
			}
			pass(3 * time.Second)
			require.Equal(t, 1, r.server.Executed())
		})
	})
	t.Run("a short outage limit", func(t *testing.T) {
		ro := redis.Options{Engine: fdengine.Options{MaxOutage: 500 * time.Millisecond}}
		redisBubble(t, setup{}, ro, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("before")))
			restart(r, 2*time.Second)
			err := r.run(bg, redis.Incr("n"))
			fails(t, err, carry.NotSent, fdengine.ErrUnavailable)
			require.Equal(t, "LOADING", codeOf(err), "the error says why")
		})
	})
	t.Run("in a stream", func(t *testing.T) {
		// A session that is up may hear LOADING too (a resync): then the stream waits, and keeps its order.
		var on atomic.Bool
		s := scripted.Options{Script: func(*scripted.ServerConn, scripted.Request) scripted.Action {
			if on.Load() {
				return scripted.Refuse(loading)
			}
			return scripted.Action{}
		}}
		redisBubble(t, setup{Server: s}, redis.Options{}, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("before")))
			on.Store(true)
			time.AfterFunc(2*time.Second, func() { on.Store(false) })
			stream := r.Stream()
			cmds := echoes(tokens("t", 100), redis.Incr)
			for _, c := range cmds {
				require.NoError(t, r.book.submit(bg, "stream", stream, c))
				r.frees(c)
			}
			r.settled(time.Minute)
			r.ok(t, commands(cmds)...)
			require.Equal(t, tokens("t", 100), r.server.Order()[1:])
		})
	})
}

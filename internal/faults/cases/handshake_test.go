package cases_test

import (
	"fmt"
	"strings"
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

// C09: after a reconnect queued commands went out unauthenticated or to database 0; or a refused SELECT was noticed
// after they had run; or a leftover OK of the handshake answered the first of them.
// https://github.com/redis/node-redis/issues/1043 https://github.com/redis/node-redis/issues/86
// https://github.com/cpp-redis/cpp_redis/issues/82 https://github.com/redis/redis-rb/pull/1350
// https://github.com/oven-sh/bun/pull/41967
func TestTheSessionIsSetUpBeforeTheBacklogIsReleased(t *testing.T) {
	for protocol, setUp := range map[int]string{
		2: "AUTH p; SELECT 3; CLIENT ID; CLIENT INFO; PING",
		3: "HELLO 3 AUTH default p; SELECT 3; CLIENT ID; CLIENT INFO; PING",
	} {
		t.Run(fmt.Sprintf("drop, RESP%d", protocol), func(t *testing.T) {
			ro := redis.Options{Password: "p", DB: 3, Protocol: protocol}
			redisBubble(t, setup{}, ro, func(t *testing.T, r *redisRig) {
				require.NoError(t, r.run(bg, redis.Echo("warm")))
				r.server.FreezeExec(true)
				cmds := echoes(tokens("t", 50), redis.Echo)
				r.submit(commands(cmds)...)
				synctest.Wait()
				r.server.CloseConns()
				tally.Cut(1)
				r.server.FreezeExec(false)
				r.settled(time.Minute)
				r.ok(t, commands(cmds)...)
				var log []string
				for _, words := range r.server.ConnLog(1) {
					log = append(log, strings.Join(words, " "))
				}
				require.Equal(t, setUp, strings.Join(log[:len(log)-50], "; "))
				require.Equal(t, tokens("t", 50), r.server.ConnTokens(1))
			})
		})
	}
	// refuseSelect refuses SELECT on connections 1 to last.
	refuseSelect := func(line string, last int) setup {
		return setup{Server: scripted.Options{OnHandshake: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
			if req.Verb() == "SELECT" && c.Index() >= 1 && c.Index() <= last {
				return scripted.Refuse(line)
			}
			return scripted.Action{}
		}}}
	}
	t.Run("SELECT refused for good", func(t *testing.T) {
		redisBubble(t, refuseSelect("ERR DB index is out of range", 1000), redis.Options{DB: 3}, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("warm")))
			r.server.CloseConns()
			start := time.Now()
			cmds := echoes(tokens("n", 20), redis.Incr)
			r.submit(commands(cmds)...)
			r.settled(time.Minute)
			took(t, start, 0, 5*time.Second)
			for _, c := range cmds {
				r.failed(t, c, carry.NotSent, fdengine.ErrUnavailable)
				require.Equal(t, "ERR", codeOf(r.err(t, c)))
			}
			require.LessOrEqual(t, r.net.Dials(), 5, "no tight loop")
		})
	})
	t.Run("SELECT refused for a while", func(t *testing.T) {
		redisBubble(t, refuseSelect("ERR not now", 4), redis.Options{DB: 3}, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("warm")))
			r.server.CloseConns()
			cmds := echoes(tokens("n", 20), redis.Incr)
			r.submit(commands(cmds)...)
			r.settled(time.Minute)
			r.ok(t, commands(cmds)...)
			require.Equal(t, 6, r.server.Conns())
			for i := 1; i <= 4; i++ {
				require.Empty(t, r.server.ConnTokens(i), "no user command before a handshake has passed")
			}
		})
	})
	t.Run("AUTH never answered", func(t *testing.T) {
		mute := scripted.Options{OnHandshake: func(c *scripted.ServerConn, _ scripted.Request) scripted.Action {
			if c.Index() == 0 {
				return scripted.Stall()
			}
			return scripted.Action{}
		}}
		ro := redis.Options{Password: "p", DialTimeout: 300 * time.Millisecond}
		redisBubble(t, setup{Server: mute}, ro, func(t *testing.T, r *redisRig) {
			start := time.Now()
			require.NoError(t, r.run(bg, redis.Incr("n")))
			took(t, start, 300*time.Millisecond, 350*time.Millisecond)
			require.Empty(t, r.server.ConnTokens(0))
		})
	})
	t.Run("a stray OK on the idle connection", func(t *testing.T) {
		redisBubble(t, setup{}, redis.Options{}, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("warm")))
			r.server.Conn(0).Push([]byte("+OK\r\n"))
			synctest.Wait()
			get := redis.Get("k")
			require.NoError(t, r.run(bg, get))
			require.Equal(t, 2, r.server.Conns(), "what nobody asked for retires the connection")
			require.Equal(t, []string{"warm"}, r.server.ConnTokens(0))
		})
	})
	t.Run("a stray OK at the moment of a GET", func(t *testing.T) {
		// Then it cannot be told from the answer, unless there is one more than there are commands: the GET may be
		// answered by it, but the surplus ends the connection before anybody else is served by it.
		s := script{"k": first(1, scripted.Action{PushAfter: []byte("+OK\r\n")})}
		redisBubble(t, setup{Server: s.options()}, redis.Options{}, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Get("k")))
			synctest.Wait()
			require.NoError(t, r.run(bg, redis.Get("other")))
			require.Equal(t, 2, r.server.Conns())
			require.Equal(t, []string{"k"}, r.server.ConnTokens(0))
		})
	})
	t.Run("a surplus reply of the handshake", func(t *testing.T) {
		extra := scripted.Options{OnHandshake: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
			if req.Verb() == "PING" && c.Index() == 0 {
				return scripted.Surplus("+OK\r\n")
			}
			return scripted.Action{}
		}}
		redisBubble(t, setup{Server: extra}, redis.Options{}, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Get("k")))
			require.Equal(t, 2, r.server.Conns(), "it answers nothing of ours")
		})
	})
}

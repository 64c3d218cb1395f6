package cases_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/redis"
)

// C08: a length with overflow, a stray character or a negative value was taken, and the stream re-framed wrongly; or
// the process died of the allocation.
// https://github.com/redis/jedis/issues/4646 https://github.com/valkey-io/valkey-go/pull/183
// https://github.com/NodeRedis/node-redis-parser/issues/65
func TestABadFrameCutsTheConnectionAndHandsNothingOfItOut(t *testing.T) {
	for name, bad := range map[string]scripted.Action{
		"bulk over 32 bits":     scripted.Reply("$4294967296\r\n"),
		"bulk without a number": scripted.Reply("$0:\r\n"),
		"bulk of minus two":     scripted.Reply("$-2\r\n"),
		"bulk over 64 bits":     scripted.Reply("$18446744073709551621\r\n"),
		"array of minus two":    scripted.Reply("*-2\r\n"),
		"huge array":            scripted.Reply("*2147483647\r\n"),
		"bad integer":           scripted.Reply(":12x\r\n"),
		"half a bulk":           {Reply: []byte("$5\r\nabc"), Close: true},
		"nested too deep":       scripted.Reply(strings.Repeat("*1\r\n", 100_000)),
		"unknown type":          scripted.Reply("@hello\r\n"),
	} {
		for _, class := range []carry.Class{carry.NoRetry, carry.Replay} {
			t.Run(fmt.Sprintf("%s, %v", name, class), func(t *testing.T) {
				s := script{"t2": first(1, bad)}
				redisBubble(t, setup{Server: s.options()}, redis.Options{}, func(t *testing.T, r *redisRig) {
					require.NoError(t, r.run(bg, redis.Echo("warm")))
					cmds := echoes(tokens("t", 10), func(s string) *redis.Cmd { return redis.Echo(s).WithClass(class) })
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					r.together(func() { r.submit(commands(cmds)...) })
					r.settled(time.Minute)
					runtime.ReadMemStats(&after)
					require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "nothing of that size is ever allocated")
					r.ok(t, cmds[0], cmds[1])
					for _, c := range cmds[2:] {
						if class == carry.Replay {
							r.ok(t, c)
							continue
						}
						r.failed(t, c, carry.MaybeExecuted)
						if framing := new(fdengine.FramingError); name != "half a bulk" {
							require.ErrorAs(t, r.err(t, c), &framing, "the protocol error is the cause")
						}
					}
					require.NoError(t, r.run(bg, redis.Echo("after")))
					require.Equal(t, 2, r.server.Conns())
					require.NotContains(t, r.server.ConnTokens(0), "after")
					require.Zero(t, r.Stats().Engine.Panics)
				})
				tally.Cut(1)
			})
		}
	}
}

// C08, the other half: frames that are rare but right are taken, and what follows on the connection is right too.
// https://github.com/redis/go-redis/pull/3884 https://github.com/redis/go-redis/pull/3995
func TestARareButRightFrameIsTakenAndTheNextReplyIsRight(t *testing.T) {
	for name, tc := range map[string]struct {
		raw   string
		check func(t *testing.T, c *redis.Cmd)
	}{
		"simple string of 600 KB": {"+" + strings.Repeat("s", 600<<10) + "\r\n", func(t *testing.T, c *redis.Cmd) {
			got, err := c.Text()
			require.NoError(t, err)
			require.Equal(t, strings.Repeat("s", 600<<10), got)
		}},
		"empty bulk": {"$0\r\n\r\n", func(t *testing.T, c *redis.Cmd) {
			got, err := c.Text()
			require.NoError(t, err)
			require.Empty(t, got)
		}},
		"null bulk":  {"$-1\r\n", isNil},
		"null array": {"*-1\r\n", isNil},
		"null":       {"_\r\n", isNil},
		"empty array": {"*0\r\n", func(t *testing.T, c *redis.Cmd) {
			got, err := c.Strings()
			require.NoError(t, err)
			require.Empty(t, got)
		}},
		"set for an array": {"~2\r\n$1\r\na\r\n$1\r\nb\r\n", func(t *testing.T, c *redis.Cmd) {
			got, err := c.Strings()
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b"}, got)
		}},
		"map for an array": {"%1\r\n$1\r\na\r\n$1\r\nb\r\n", func(t *testing.T, c *redis.Cmd) {
			got, err := c.Map()
			require.NoError(t, err)
			require.Len(t, got, 1)
		}},
		"map with unknown fields": {"%2\r\n+new\r\n*2\r\n:1\r\n%1\r\n+deep\r\n#t\r\n+known\r\n,1.5\r\n", func(t *testing.T, c *redis.Cmd) {
			got, err := c.Map()
			require.NoError(t, err)
			require.Len(t, got, 2)
			require.EqualValues(t, "known", got[1].Key)
		}},
		"attribute before the reply": {"|1\r\n+ttl\r\n:5\r\n+v\r\n", func(t *testing.T, c *redis.Cmd) {
			got, err := c.Text()
			require.NoError(t, err)
			require.Equal(t, "v", got)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := script{"k": always(scripted.Reply(tc.raw))}
			redisBubble(t, setup{Server: s.options()}, redis.Options{}, func(t *testing.T, r *redisRig) {
				get := redis.Get("k")
				r.together(func() {
					r.submit(get)
					r.expect(get, nil)
					r.submit(redis.Echo("behind"))
				})
				r.settled(time.Minute)
				r.ok(t, get)
				tc.check(t, get)
				require.NoError(t, r.run(bg, redis.Echo("after")))
				require.Equal(t, 1, r.server.Conns())
			})
		})
	}
	t.Run("a type the reader did not expect", func(t *testing.T) {
		// It says so; the frame is gone from the stream all the same.
		s := script{"k": always(scripted.Reply("*2\r\n:1\r\n:2\r\n"))}
		redisBubble(t, setup{Server: s.options()}, redis.Options{}, func(t *testing.T, r *redisRig) {
			get := redis.Get("k")
			r.submit(get)
			r.expect(get, nil)
			r.settled(time.Minute)
			_, err := get.Int64()
			require.Error(t, err)
			require.NoError(t, r.run(bg, redis.Echo("after")))
			require.Equal(t, 1, r.server.Conns())
		})
	})
}

func isNil(t *testing.T, c *redis.Cmd) {
	_, err := c.Text()
	require.ErrorIs(t, err, redis.Nil)
}

package cases_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// C31: a large reply met a large request with all buffers full. The client did not read while its own write was
// stuck, or told its reader of a command only after the whole flush, and nothing moved until a timeout.
// https://github.com/redis-rs/redis-rs/issues/1955 https://github.com/valkey-io/valkey-glide/pull/5892
// https://github.com/jackc/pgx/issues/374 https://github.com/redis/go-redis/pull/4002
func TestLargeRequestsAndLargeRepliesPassEachOther(t *testing.T) {
	size := tally.Count(2, 16) << 20
	// On loopback a segment has up to 64 KB; with buffers below that the kernel falls back to its probe timer and the
	// test to its patience. The small buffers are those of the network in memory.
	const buffers = 128 << 10
	// serial runs f with an engine on a serial server whose GET is that large and whose BIG echoes its argument.
	serial := func(t *testing.T, f func(e *fdengine.Engine, b *book)) {
		large := bytes.Repeat([]byte("r"), size)
		s := startRaw(t, buffers, func(words []string) []byte {
			switch words[0] {
			case "GET":
				return large
			case "BIG":
				return []byte(words[2])
			case "4KB":
				return []byte(strings.Repeat(words[1][:1], 4096))
			}
			return []byte(words[1])
		})
		e, b, l := tcpEngineSmall(t, s.addr(), buffers, fdengine.Options{ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second})
		f(e, b)
		st := e.Stats()
		require.Zero(t, st.Cuts+st.Replays, "no timeout, no second send")
		require.EqualValues(t, 1, st.Sessions)
		s.done(t, e, b, l)
	}
	t.Run("a large GET, a large SET and a hundred small ones", func(t *testing.T) {
		serial(t, func(e *fdengine.Engine, b *book) {
			get := &sizeCmd{scripted.Cmd{Verb: "GET", Token: "get"}, 0}
			set := once("set")
			set.Verb, set.Args = "SET", []string{strings.Repeat("s", size)}
			require.NoError(t, b.submit(bg, "main", e, get))
			require.NoError(t, b.submit(bg, "main", e, set))
			for _, c := range echoes(tokens("t", 100), once) {
				require.NoError(t, b.submit(bg, "main", e, c))
			}
			b.wait()
			require.Greater(t, get.size, size)
		})
	})
	t.Run("two large echoes in one flush", func(t *testing.T) {
		serial(t, func(e *fdengine.Engine, b *book) {
			arg := strings.Repeat("e", size/2)
			var cmds []*sizeCmd
			for _, token := range []string{"one", "two"} {
				cmds = append(cmds, &sizeCmd{scripted.Cmd{Verb: "BIG", Token: token, Args: []string{arg}}, 0})
			}
			for _, err := range b.batch(bg, "main", e, commands(cmds)) {
				require.NoError(t, err)
			}
			for _, c := range cmds {
				require.Greater(t, c.size, len(arg))
			}
		})
	})
	t.Run("a batch of 10,000 with replies of 4 KB", func(t *testing.T) {
		serial(t, func(e *fdengine.Engine, b *book) {
			var cmds []*sizeCmd
			for _, token := range tokens("t", tally.Count(1500, 10_000)) {
				cmds = append(cmds, &sizeCmd{scripted.Cmd{Verb: "4KB", Token: token}, 0})
			}
			for _, err := range b.batch(bg, "main", e, commands(cmds)) {
				require.NoError(t, err)
			}
		})
	})
	t.Run("in memory, with buffers of 4 KB", func(t *testing.T) {
		// The same on a clock that only goes on when everybody is stuck: a deadlock is a timeout there, and seen.
		s := scripted.Options{ReadAhead: -1, Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
			if req.Verb() == "GET" {
				return scripted.Reply(string(scripted.AppendBulk(nil, strings.Repeat("r", size))))
			}
			return scripted.Action{}
		}}
		o := setup{Server: s, Pipe: memnet.Options{ToServer: 4096, ToClient: 4096}}
		bubble(t, o, func(t *testing.T, r *rig) {
			start := time.Now()
			get := &sizeCmd{scripted.Cmd{Verb: "GET", Token: "get"}, 0}
			set := once("set")
			set.Verb, set.Args = "SET", []string{strings.Repeat("s", size)}
			r.submit(get, set)
			r.submit(commands(echoes(tokens("t", 100), once))...)
			r.settled(time.Second)
			took(t, start, 0, 0)
			require.Zero(t, r.Stats().Cuts)
			require.Greater(t, get.size, size)
		})
	})
	t.Run("real server", func(t *testing.T) {
		s := testserver.StartRedis(t, testserver.RedisOptions{TLS: true})
		for name, o := range map[string]redis.Options{
			"plain": {Addr: s.Addr()},
			"TLS":   {Addr: s.TLSAddr(), TLS: s.TLSConfig()},
		} {
			t.Run(name, func(t *testing.T) { largeValues(t, o) })
		}
	})
}

// largeValues has many callers set and get large values of their own, for a while.
func largeValues(t *testing.T, o redis.Options) {
	callers, size := tally.Count(4, 64), tally.Count(1, 10)<<20
	until := time.Now().Add(time.Duration(tally.Count(100, 60_000)) * time.Millisecond)
	o.Engine = fdengine.Options{ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second}
	c := realClient(t, o)
	var done atomic.Int64
	var wg sync.WaitGroup
	for g := range callers {
		value := bytes.Repeat([]byte{byte('a' + g%26)}, size)
		wg.Go(func() {
			key := fmt.Sprintf("k%d", g)
			for i := 0; i == 0 || time.Now().Before(until); i++ {
				if err := c.Do(bg, redis.Set(key, value).WithClass(carry.NoRetry)); err != nil {
					t.Errorf("SET: %v", err)
					return
				}
				get := redis.Get(key).WithClass(carry.NoRetry)
				if err := c.Do(bg, get); err != nil {
					t.Errorf("GET: %v", err)
					return
				}
				if got, err := get.Bytes(); err != nil || !bytes.Equal(got, value) {
					t.Errorf("%s came back as something else: %d bytes, %v", key, len(got), err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	st := c.Stats()
	require.Zero(t, st.Engine.Cuts, "no timeout")
	require.EqualValues(t, 1, st.Pool.Dials)
	require.GreaterOrEqual(t, done.Load(), int64(callers))
	tally.Scenario(1)
}

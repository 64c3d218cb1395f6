package cases_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// C01: a caller left after its bytes had gone out, and the next one read its reply.
// https://github.com/redis/redis-py/issues/2624 https://github.com/redis/redis-py/issues/2665
// https://github.com/beanstalkd/go-beanstalk/pull/26
func TestAReplyWhoseCallerLeftGoesToNobody(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		s := script{"t1": always(scripted.Delay(100 * time.Millisecond))}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("t0")))
			ctx, cancel := context.WithCancel(bg)
			seen := 0
			time.AfterFunc(10*time.Millisecond, func() {
				seen = len(r.server.ConnTokens(0))
				cancel()
			})
			start := time.Now()
			fails(t, r.run(ctx, once("t1")), carry.MaybeExecuted, context.Canceled)
			took(t, start, 10*time.Millisecond, 10*time.Millisecond)
			require.Equal(t, 2, seen, "the server had t1 before the cancel")
			require.NoError(t, r.run(bg, once("t2")))
			require.NoError(t, r.run(bg, once("t3")))
			require.Equal(t, 1, r.server.Conns(), "the connection lives")
			require.Equal(t, 1, r.server.Executions("t1"))
		})
	})
	t.Run("storm", func(t *testing.T) {
		slow := func(_ int, c, _ *memnet.Conn) error { c.In().Delay(100 * time.Millisecond); return nil }
		rounds := tally.Count(320, 1000)
		bubble(t, setup{OnDial: slow}, func(t *testing.T, r *rig) {
			var wg sync.WaitGroup
			for g := range 32 {
				rnd := tally.Rand(uint64(100 + g))
				wg.Go(func() {
					who := fmt.Sprintf("g%d", g)
					for i := range rounds / 32 {
						ctx, cancel := context.WithTimeout(bg, time.Duration(rnd.IntN(120_000))*time.Microsecond)
						err := r.do(ctx, who, r.Engine, once(fmt.Sprintf("%s-%d-left", who, i)))
						cancel()
						if err != nil {
							require.ErrorIs(t, err, context.DeadlineExceeded)
						}
						require.NoError(t, r.do(bg, who, r.Engine, once(fmt.Sprintf("%s-%d", who, i))))
					}
				})
			}
			wg.Wait()
			require.Equal(t, 1, r.server.Conns())
		})
	})
	t.Run("beanstalkd", func(t *testing.T) {
		tubeBubble(t, func(c *tubeConn, line string) {
			if strings.HasPrefix(line, "put ") {
				time.Sleep(100 * time.Millisecond)
				c.say("INSERTED 1\r\n")
				return
			}
			c.say(dict("uptime", 7))
		}, func(t *testing.T, s *tubeServer) {
			b := s.client(t, nil)
			defer s.done(t, b)
			ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
			defer cancel()
			_, err := b.Put(ctx, &beanstalkd.Put{Body: []byte("job")})
			fails(t, err, carry.MaybeExecuted, context.DeadlineExceeded)
			// The late INSERTED belongs to the put, whoever is next in line.
			stats, err := b.Stats(bg)
			require.NoError(t, err)
			up, err := stats.Int("uptime")
			require.NoError(t, err)
			require.EqualValues(t, 7, up)
			require.Equal(t, 1, s.conns())
			require.Len(t, s.lines("put"), 1)
		})
	})
}

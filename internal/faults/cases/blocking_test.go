package cases_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// blocked returns when the server has n clients that block.
func blocked(t *testing.T, s *testserver.Redis, n int) {
	t.Helper()
	w := s.Witness()
	want := fmt.Sprintf("blocked_clients:%d\r\n", n)
	await(t, func() bool {
		info, err := w.Do("INFO", "clients")
		require.NoError(t, err)
		return strings.Contains(info.(string), want)
	})
}

// C23: the client gave up on a blocking pop, and its connection stayed a waiter on the server: what was pushed next
// went to nobody.
// https://github.com/valkey-io/valkey-glide/issues/6794 https://github.com/aio-libs-abandoned/aioredis-py/pull/59
func TestAnAbandonedPopSwallowsNoJob(t *testing.T) {
	// pops runs BLPOP and says what it got.
	pops := func(ctx context.Context, c *redis.Client, line string) (string, error) {
		cmd := raw(line)
		if err := c.Blocking(ctx, cmd); err != nil {
			return "", err
		}
		got, err := cmd.Strings()
		if err != nil {
			return "", err
		}
		return got[1], nil
	}
	t.Run("redis, one", func(t *testing.T) {
		s := startRedis(t)
		one, two := realClient(t, redis.Options{Addr: s.Addr()}), realClient(t, redis.Options{Addr: s.Addr()})
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		_, err := pops(ctx, one, "BLPOP q 0")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, isMaybe(err), "the server said that it had nothing, or was never asked: %v", err)
		s.Text("LPUSH", "q", "job1")
		got, err := pops(bg, two, "BLPOP q 1")
		require.NoError(t, err)
		require.Equal(t, "job1", got)
		tally.Scenario(1)
	})
	t.Run("redis, at the moment of the push", func(t *testing.T) {
		s := startRedis(t)
		one, two := realClient(t, redis.Options{Addr: s.Addr()}), realClient(t, redis.Options{Addr: s.Addr()})
		const lanes = 8 // lists that run side by side
		var wg sync.WaitGroup
		for lane := range lanes {
			wg.Go(func() {
				q, w := fmt.Sprintf("q%d", lane), s.Witness()
				rnd := rand.New(rand.NewPCG(tally.Seed(), uint64(lane)))
				for i := range tally.Count(10, 200) / lanes * 2 {
					job := fmt.Sprintf("job%d", i)
					push := time.Duration(90_000+rnd.IntN(20_000)) * time.Microsecond
					ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
					pushed := make(chan error, 1)
					time.AfterFunc(push, func() { _, err := w.Do("LPUSH", q, job); pushed <- err })
					got, err := pops(ctx, one, "BLPOP "+q+" 0")
					cancel()
					if err2 := <-pushed; err2 != nil {
						t.Errorf("push: %v", err2)
						return
					}
					if err != nil {
						if isMaybe(err) {
							t.Errorf("the server was asked, and said what it did: %v", err)
						}
						got, err = pops(bg, two, "BLPOP "+q+" 1")
					}
					if err != nil || got != job {
						t.Errorf("%s of %s is lost: %q, %v", job, q, got, err)
						return
					}
				}
			})
		}
		wg.Wait()
		require.Zero(t, s.Int("DBSIZE"), "and none was there twice")
		tally.Scenario(1)
	})
	t.Run("beanstalkd", func(t *testing.T) {
		s := testserver.StartBeanstalkd(t)
		o := beanstalkd.Options{Addr: s.Addr()}
		one, two, b := consumer(t, o), consumer(t, o), tubeClient(t, o)
		for i := range tally.Count(10, 200) {
			ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
			job, err := one.Reserve(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Nil(t, job)
			id, err := b.Put(bg, &beanstalkd.Put{Body: fmt.Appendf(nil, "job%d", i)})
			require.NoError(t, err)
			job, err = two.ReserveWithTimeout(bg, 2*time.Second)
			require.NoError(t, err)
			require.Equal(t, id, job.ID)
			require.NoError(t, job.Delete(bg))
		}
		tally.Scenario(1)
	})
}

// consumer and tubeClient are closed with the test, and checked.
func consumer(t *testing.T, o beanstalkd.Options) *beanstalkd.Consumer {
	t.Helper()
	c, err := beanstalkd.NewConsumer(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		<-c.Done()
		even(t, c.Usage().Engine)
		require.Zero(t, c.Usage().Pool.Open, "G4")
	})
	return c
}

func tubeClient(t *testing.T, o beanstalkd.Options) *beanstalkd.Client {
	t.Helper()
	c, err := beanstalkd.New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		<-c.Done()
		even(t, c.Usage().Engine)
		require.Zero(t, c.Usage().Pool.Open, "G4")
	})
	return c
}

// callers runs n goroutines of f until stop is closed, and returns how long each call took.
func callers(n int, stop <-chan struct{}, f func(g, i int)) (wait func() []time.Duration) {
	var wg sync.WaitGroup
	all := make([][]time.Duration, n)
	for g := range n {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				start := time.Now()
				f(g, i)
				all[g] = append(all[g], time.Since(start))
			}
		})
	}
	return func() []time.Duration { wg.Wait(); return slices.Concat(all...) }
}

// p99 requires that of at least 100 calls all but a hundredth were faster than limit. Short runs share the machine
// with everything else and only require that there were such calls.
func p99(t *testing.T, took []time.Duration, limit time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, len(took), 100, "calls while the others waited")
	slices.Sort(took)
	if tally.Full() {
		require.Less(t, took[len(took)*99/100], limit)
	}
}

// C33: a blocking pop on the shared connection kept everyone behind it waiting; so did one huge batch.
// https://github.com/redis-rs/redis-rs/issues/453 https://github.com/beanstalkd/beanstalkd/issues/647
// https://github.com/redis/rueidis/pull/631
func TestABlockingCommandKeepsNobodyWaiting(t *testing.T) {
	t.Run("table", func(t *testing.T) {
		redisBubble(t, setup{}, redis.Options{}, func(t *testing.T, r *redisRig) {
			for _, line := range []string{
				"BLPOP q 0", "BRPOP q 0", "BLMOVE q p LEFT LEFT 0", "BRPOPLPUSH q p 0", "BZPOPMIN z 0", "BZPOPMAX z 0",
				"BLMPOP 0 1 q LEFT", "BZMPOP 0 1 z MIN", "XREAD BLOCK 0 STREAMS x $", "XREAD COUNT 5 BLOCK 100 STREAMS x $",
				"XREADGROUP GROUP g c BLOCK 0 STREAMS x >", "XREADGROUP GROUP g c COUNT 1 NOACK BLOCK 1 STREAMS x >", "WAIT 1 0", "WAITAOF 1 0 0",
			} {
				refusedHere(t, r.book, r.Client, line)
			}
			require.Zero(t, r.net.Dials(), "refused up front")
			for _, line := range []string{"XREAD STREAMS x 0", "xread count 5 streams x 0", "XREADGROUP GROUP g c STREAMS x >", "XREAD STREAMS block 0"} {
				require.NoError(t, r.Do(bg, raw(line)), line)
			}
			require.Equal(t, 4, len(r.server.ConnTokens(0)), "these do not block, and ride along")
		})
	})
	t.Run("redis", func(t *testing.T) {
		s := startRedis(t)
		c := realClient(t, redis.Options{Addr: s.Addr()})
		popped := make(chan error, 1)
		pop := raw(fmt.Sprintf("BLPOP empty %d", tally.Count(1, 5)))
		stop := make(chan struct{})
		go func() { popped <- c.Blocking(bg, pop); close(stop) }()
		blocked(t, s, 1)
		wait := callers(16, stop, func(g, i int) {
			if err := c.Do(bg, redis.Set(fmt.Sprintf("k%d", g), fmt.Sprint(i))); err != nil {
				t.Errorf("%v", err)
			}
		})
		took := wait()
		require.NoError(t, <-popped)
		_, err := pop.Strings()
		require.ErrorIs(t, err, redis.Nil)
		p99(t, took, 100*time.Millisecond)
		tally.Scenario(1)
	})
	t.Run("a worker that pops and pushes", func(t *testing.T) {
		s := startRedis(t)
		c := realClient(t, redis.Options{Addr: s.Addr()})
		popped := make(chan error, 1)
		go func() { popped <- c.Blocking(bg, raw("BLPOP mine 20")) }()
		blocked(t, s, 1)
		require.NoError(t, c.Do(bg, redis.LPush("mine", "v")))
		require.NoError(t, <-popped)
		tally.Scenario(1)
	})
	t.Run("beanstalkd", func(t *testing.T) {
		s := testserver.StartBeanstalkd(t)
		o := beanstalkd.Options{Addr: s.Addr()}
		c, b := consumer(t, o), tubeClient(t, o)
		for _, cmd := range []*beanstalkd.Cmd{beanstalkd.Reserve(), beanstalkd.ReserveWithTimeout(time.Second), beanstalkd.Watch("t")} {
			fails(t, b.Do(bg, cmd), carry.NotSent, beanstalkd.ErrNotShared)
		}
		_, err := c.Ignore(bg, "default")
		require.ErrorIs(t, err, beanstalkd.ErrNotIgnored)
		_, err = c.Watch(bg, "none")
		require.NoError(t, err)
		_, err = c.Ignore(bg, "default")
		require.NoError(t, err)
		stop := make(chan struct{})
		go func() {
			_, err := c.ReserveWithTimeout(bg, time.Second)
			if !errors.Is(err, beanstalkd.ErrTimedOut) {
				t.Errorf("%v", err)
			}
			close(stop)
		}()
		wait := callers(16, stop, func(g, i int) {
			if _, err := b.Put(bg, &beanstalkd.Put{Body: fmt.Appendf(nil, "%d-%d", g, i)}); err != nil {
				t.Errorf("%v", err)
			}
		})
		p99(t, wait(), 100*time.Millisecond)
		tally.Scenario(1)
	})
	t.Run("a huge batch", func(t *testing.T) {
		// It is admitted in pieces: others get their turn between them, and long before its end.
		s := startRedis(t)
		c := realClient(t, redis.Options{Addr: s.Addr()})
		require.NoError(t, c.Ping(bg))
		cmds := make([]fdengine.Command, tally.Count(20_000, 100_000))
		for i := range cmds {
			cmds[i] = redis.Set("batch", "v")
		}
		errs := make([]error, len(cmds))
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			if err := c.DoBatch(bg, cmds, errs); err != nil {
				t.Errorf("%v", err)
			}
		}()
		wait := callers(4, stop, func(g, i int) {
			token := fmt.Sprintf("t%d-%d", g, i)
			cmd := redis.Echo(token)
			if err := c.Do(bg, cmd); err != nil {
				t.Errorf("%v", err)
			}
			if got, err := cmd.Text(); err != nil || got != token {
				t.Errorf("%s answered %q, %v", token, got, err)
			}
		})
		took := wait()
		slices.Sort(took)
		require.Greater(t, len(took), 20, "others were served while the batch ran")
		if tally.Full() {
			require.Less(t, took[len(took)*99/100], 250*time.Millisecond)
		}
		tally.Scenario(1)
	})
}

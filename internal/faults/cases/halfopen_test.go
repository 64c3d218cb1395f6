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
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/proxy"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// C42: a power loss or a forgetful NAT leaves a socket that looks alive. Calls hung for minutes on it, and new ones
// were put there; a reserve with a timeout waited for ever.
// https://github.com/redis/lettuce/issues/2082 https://github.com/golang/go/issues/36026
// https://github.com/golang/go/issues/39750 https://github.com/justinmayhew/greenstalk/pull/16
// https://github.com/centrifugal/centrifugo/pull/1192
func TestAConnectionThatOnlyLooksAliveIsFoundOutAndLeft(t *testing.T) {
	const limit = time.Second
	eo := fdengine.Options{ReadTimeout: limit, PingEvery: 2 * time.Second}
	for name, freeze := range map[string]func(c *memnet.Conn){
		"both ways":     (*memnet.Conn).Freeze,
		"requests lost": func(c *memnet.Conn) { c.Out().SwallowAt(c.Out().Accepted()) },
		"requests held": func(c *memnet.Conn) { c.Out().Freeze() },
		"replies held":  func(c *memnet.Conn) { c.In().Freeze() },
	} {
		t.Run("under load, "+name, func(t *testing.T) {
			redisBubble(t, setup{}, redis.Options{Engine: eo}, func(t *testing.T, r *redisRig) {
				require.NoError(t, r.run(bg, redis.Echo("warm")))
				freeze(r.conn(0))
				tally.Cut(1)
				start := time.Now()
				var wg sync.WaitGroup
				for g := range 8 {
					who := fmt.Sprintf("g%d", g)
					wg.Go(func() {
						fails(t, r.do(bg, who, r.Client, redis.Echo(who+"-once").WithClass(carry.NoRetry)), carry.MaybeExecuted)
						took(t, start, limit, limit+100*time.Millisecond)
						require.NoError(t, r.do(bg, who, r.Client, redis.Echo(who+"-next").WithClass(carry.NoRetry)))
						took(t, start, limit, limit+2*time.Second)
					})
					wg.Go(func() {
						require.NoError(t, r.do(bg, who+"r", r.Client, redis.Echo(who+"-again")))
						took(t, start, limit, limit+2*time.Second)
					})
				}
				wg.Wait()
				require.Equal(t, 2, r.server.Conns())
				require.EqualValues(t, 1, r.Stats().Engine.Cuts)
				require.True(t, r.conn(0).Closed())
				// The dead connection comes back to life; what it says now reaches nobody.
				r.conn(0).Thaw()
				pass(time.Second)
				require.NoError(t, r.run(bg, redis.Echo("after thaw")))
				require.Equal(t, 2, r.server.Conns())
				for _, token := range r.server.ConnTokens(0) {
					require.NotContains(t, token, "-next")
				}
			})
		})
		t.Run("idle, "+name, func(t *testing.T) {
			bubble(t, setup{Engine: eo}, func(t *testing.T, r *rig) {
				require.NoError(t, r.run(bg, once("warm")))
				freeze(r.conn(0))
				tally.Cut(1)
				pass(2*eo.PingEvery - 10*time.Millisecond)
				require.True(t, r.conn(0).Closed(), "its own ping found out")
				start := time.Now()
				require.NoError(t, r.run(bg, once("next")))
				took(t, start, 0, 100*time.Millisecond)
				require.Equal(t, []string{"next"}, r.server.ConnTokens(1))
			})
		})
	}
	t.Run("the write is stuck", func(t *testing.T) {
		// More than the buffers hold: it is the write that does not get on.
		wo := fdengine.Options{ReadTimeout: -1, WriteTimeout: limit}
		bubble(t, setup{Engine: wo, Pipe: memnet.Options{ToServer: 4096}}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			r.conn(0).Freeze()
			start := time.Now()
			c := again("big", 2)
			c.Args = []string{strings.Repeat("x", 100<<10)}
			require.NoError(t, r.run(bg, c))
			// Nobody can see when the last byte was accepted, only whether one was since the last look: up to twice the limit.
			took(t, start, limit, 2*limit+200*time.Millisecond)
			require.False(t, c.Maybe, "it had not left whole")
			require.Equal(t, 2, r.server.Conns())
			tally.Cut(1)
		})
	})
	t.Run("beanstalkd, a reserve with a timeout", func(t *testing.T) {
		silent := func(c *tubeConn, line string) {
			if c.index > 0 { // the first connection says nothing
				c.say("TIMED_OUT\r\n")
			}
		}
		tubeBubble(t, silent, func(t *testing.T, s *tubeServer) {
			o := s.options()
			o.Engine.ReadTimeout = limit
			c, err := beanstalkd.NewConsumer(o)
			require.NoError(t, err)
			defer s.done(t, c)
			start := time.Now()
			_, err = c.ReserveWithTimeout(bg, time.Second)
			// What the server may have handed out there goes back to it with the connection: the reserve is made again.
			require.ErrorIs(t, err, beanstalkd.ErrTimedOut)
			took(t, start, time.Second+limit, time.Second+limit+100*time.Millisecond)
			require.Equal(t, 2, s.conns())
		})
		mute := func(*tubeConn, string) {}
		tubeBubble(t, mute, func(t *testing.T, s *tubeServer) {
			o := s.options()
			o.Engine.ReadTimeout = limit
			c, err := beanstalkd.NewConsumer(o)
			require.NoError(t, err)
			defer s.done(t, c)
			start := time.Now()
			ctx, cancel := context.WithTimeout(bg, 3*time.Second)
			defer cancel()
			_, err = c.ReserveWithTimeout(ctx, time.Second)
			fails(t, err, carry.MaybeExecuted, context.DeadlineExceeded)
			took(t, start, 3*time.Second, 3*time.Second)
		})
		tally.Cut(3)
	})
	t.Run("redis behind a proxy", func(t *testing.T) {
		s := startRedis(t)
		for name, d := range map[string]proxy.Direction{"both ways": proxy.BothWays, "requests": proxy.Requests, "replies": proxy.Replies} {
			t.Run(name, func(t *testing.T) { frozenRedis(t, s, d) })
		}
	})
	t.Run("beanstalkd behind a proxy", func(t *testing.T) { frozenTube(t) })
}

// frozenRedis freezes the only connection to a real server under load, and thaws it when it has been left.
func frozenRedis(t *testing.T, s *testserver.Redis, d proxy.Direction) {
	const limit = 300 * time.Millisecond
	p, err := proxy.New(s.Addr())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	s.Text("FLUSHALL")
	c := realClient(t, redis.Options{Addr: p.Addr(), Engine: fdengine.Options{ReadTimeout: limit}})
	require.NoError(t, c.Ping(bg))
	old := p.Links()[0]
	old.Freeze(d)
	tally.Cut(1)
	start := time.Now()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			err := c.Do(bg, redis.Incr(fmt.Sprintf("once%d", g)))
			if err == nil || !isMaybe(err) {
				t.Errorf("NoRetry on a dead connection: %v", err)
			}
		})
		wg.Go(func() {
			token := fmt.Sprintf("again%d", g)
			cmd := redis.Echo(token)
			if err := c.Do(bg, cmd); err != nil {
				t.Errorf("%v", err)
				return
			}
			if got, err := cmd.Text(); err != nil || got != token {
				t.Errorf("%s answered %q, %v", token, got, err)
			}
		})
	}
	wg.Wait()
	require.Less(t, time.Since(start), limit+10*time.Second, "not the minutes that the kernel takes")
	require.EqualValues(t, 1, c.Stats().Engine.Cuts)
	old.Thaw(d)
	<-old.Done()
	for g := range 8 {
		require.LessOrEqual(t, s.Int("GET", fmt.Sprintf("once%d", g)), 1)
	}
	cmd := redis.Echo("after")
	require.NoError(t, c.Do(bg, cmd))
	got, err := cmd.Text()
	require.NoError(t, err)
	require.Equal(t, "after", got)
	tally.Scenario(1)
}

// frozenTube freezes the connection of a waiting consumer. The job that is put meanwhile reaches it over another one.
func frozenTube(t *testing.T) {
	s := testserver.StartBeanstalkd(t)
	p, err := proxy.New(s.Addr())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	c := consumer(t, beanstalkd.Options{Addr: p.Addr(), Engine: fdengine.Options{ReadTimeout: 300 * time.Millisecond}})
	b := tubeClient(t, beanstalkd.Options{Addr: s.Addr()})
	_, err = c.ReserveWithTimeout(bg, 0)
	require.ErrorIs(t, err, beanstalkd.ErrTimedOut)
	old := p.Links()[0]
	old.Freeze(proxy.BothWays)
	tally.Cut(1)
	reserved := make(chan *beanstalkd.Job, 1)
	go func() {
		job, err := c.ReserveWithTimeout(bg, time.Second)
		if err != nil {
			t.Errorf("%v", err)
		}
		reserved <- job
	}()
	id, err := b.Put(bg, &beanstalkd.Put{Body: []byte("job")})
	require.NoError(t, err)
	job := <-reserved
	require.NotNil(t, job)
	require.Equal(t, id, job.ID)
	require.NoError(t, job.Delete(bg))
	old.Thaw(proxy.BothWays)
	<-old.Done()
	tally.Scenario(1)
}

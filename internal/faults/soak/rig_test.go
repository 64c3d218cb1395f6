package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/proxy"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// liveness is how long the load may take for some hundred answers, once nothing is in its way.
const liveness = 60 * time.Second

// site is one server and the proxy before it.
type site struct {
	addr   string
	server interface {
		Kill9()
		Restart()
		Stop()
		Cont()
	}
	proxy *proxy.Proxy
	kills int
}

// harm counts connections that a trouble has hurt.
func (s *site) harm(n int) { tally.Cut(n) }

// all does f to each link and returns them.
func (s *site) all(f func(*proxy.Link)) []*proxy.Link {
	links := s.proxy.Links()
	for _, l := range links {
		f(l)
	}
	s.harm(len(links))
	return links
}

// rig is the two sites, the clients and the load of one round.
type rig struct {
	t     *testing.T
	sites [sites]*site
	cache *testserver.Redis
	tubes *testserver.Process
	load
	nobody  string // an address that accepts and hangs up
	timeout time.Duration
}

// newRig starts servers, proxies and clients; options are drawn from rng. All ends with the test.
func newRig(t *testing.T, rng *rand.Rand) *rig {
	t.Helper()
	r := &rig{
		t:       t,
		cache:   testserver.StartRedis(t, testserver.RedisOptions{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}}),
		tubes:   testserver.StartBeanstalkd(t, "-b", "."),
		nobody:  hangUp(t),
		timeout: time.Duration(150+rng.IntN(200)) * time.Millisecond,
	}
	r.sites = [sites]*site{{addr: r.cache.Addr(), server: r.cache}, {addr: r.tubes.Addr(), server: r.tubes}}
	for _, s := range r.sites {
		p, err := proxy.New(s.addr)
		require.NoError(t, err)
		t.Cleanup(p.Close)
		s.proxy = p
	}
	eo := fdengine.Options{
		ReadTimeout: r.timeout, WriteTimeout: r.timeout, BackoffMax: 50 * time.Millisecond, Budget: replayBudget,
		Window: []int{0, 32, 1000}[rng.IntN(3)], Queue: []int{0, 100, 1000}[rng.IntN(3)],
		MaxOutage: []time.Duration{0, -1, 300 * time.Millisecond}[rng.IntN(3)],
		PingEvery: []time.Duration{0, 20 * time.Millisecond}[rng.IntN(2)],
	}
	ro := redis.Options{Addr: r.sites[redisSite].proxy.Addr(), DialTimeout: r.timeout, Protocol: 2 + rng.IntN(2), Engine: eo}
	to := beanstalkd.Options{Addr: r.sites[tubeSite].proxy.Addr(), DialTimeout: r.timeout, Engine: eo}
	t.Logf("timeout=%v window=%d queue=%d outage=%v ping=%v protocol=%d",
		r.timeout, eo.Window, eo.Queue, eo.MaxOutage, eo.PingEvery, ro.Protocol)
	var err error
	r.redis, err = redis.New(ro)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.redis.Close(); <-r.redis.Done() })
	r.tube, err = beanstalkd.New(to)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.tube.Close(); <-r.tube.Done() })
	return r
}

// hangUp serves an address that accepts and closes.
func hangUp(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return l.Addr().String()
}

// warm connects both clients.
func (r *rig) warm() {
	r.t.Helper()
	require.NoError(r.t, r.redis.Ping(context.Background()))
	require.NoError(r.t, r.tube.Ping(context.Background()))
}

// hold lets the load run for d.
func (r *rig) hold(d time.Duration) { r.rest(d) }

// await waits for done, but not for ever.
func (r *rig) await(what string, done <-chan struct{}) {
	r.t.Helper()
	select {
	case <-done:
	case <-time.After(liveness):
		r.hang(what)
	}
}

// answers waits until a site has answered n commands more.
func (r *rig) answers(site, n int) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d answers of site %d", n, site), func() func() bool {
		want := r.done[site].Load() + int64(n)
		return func() bool { return r.done[site].Load() >= want }
	}())
}

// until polls a condition on other processes or on many goroutines.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(liveness); !ok(); <-tick.C {
		if time.Now().After(end) {
			r.hang(what)
		}
	}
}

// hang fails the test with all goroutines.
func (r *rig) hang(what string) {
	r.t.Helper()
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	r.t.Logf("redis: %+v\nbeanstalkd: %+v", r.redis.Stats(), r.tube.Usage())
	r.t.Fatalf("waited %v for %s\n%s", liveness, what, b.String())
}

// readJobs reserves all jobs of the default tube, in batches, and returns them.
func (r *rig) readJobs() (out []found) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.tubes.Addr())
	require.NoError(r.t, err)
	defer c.Close()
	require.NoError(r.t, c.SetDeadline(time.Now().Add(liveness)))
	in := newLines(c)
	const batch = 500
	for {
		_, err := io.WriteString(c, strings.Repeat("reserve-with-timeout 0\r\n", batch))
		require.NoError(r.t, err)
		empty := false
		for range batch {
			id, body, err := in.job()
			require.NoError(r.t, err)
			if id == "" {
				empty = true
				continue
			}
			out = append(out, found{id, body})
		}
		if empty {
			return out
		}
	}
}

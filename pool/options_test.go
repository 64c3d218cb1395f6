package pool_test

import (
	"context"
	"crypto/tls"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

func TestValidateReportsAllFaultsWithValueAndBound(t *testing.T) {
	_, err := pool.New(pool.Options{
		Network: "udp", Addr: "no-port", Size: -1, BackoffMin: -time.Second, BackoffMax: -time.Minute,
		KeepAlive: time.Millisecond, UserTimeout: time.Microsecond, TLS: &tls.Config{},
		Credentials: func(context.Context) (string, string, error) { return "", "", nil },
	})
	for _, want := range []string{
		`Network "udp"`, `Addr "no-port" is not host:port`, "Size -1 is below 0", "BackoffMin -1s is below 0",
		"BackoffMax -1m0s is below 0", "KeepAlive 1ms is below 1s", "UserTimeout 1µs is below 1ms",
		"TLS without ServerName", "Credentials without a Handshake",
	} {
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, 9, strings.Count(err.Error(), "pool: "))

	for want, o := range map[string]pool.Options{
		"Addr is empty":                           {},
		`port "99999", it must be 1 to 65535`:     {Addr: "a:99999"},
		`port "0", it must be`:                    {Addr: "a:0"},
		`port "", it must be`:                     {Addr: "a:"},
		`port "-1", it must be`:                   {Addr: "a:-1"},
		`port "99999999999999999999", it must be`: {Addr: "a:99999999999999999999"},
		"MaxIdle 3 is above Size 2":               {Addr: "a:1", Size: 2, MaxIdle: 3},
		"MaxIdle 11 is above Size 10":             {Addr: "a:1", MaxIdle: 11},
		"BackoffMin 2s is above BackoffMax 1s":    {Addr: "a:1", BackoffMin: 2 * time.Second},
		"TLS without ServerName, and Addr \"/s\"": {Network: "unix", Addr: "/s", TLS: &tls.Config{}},
	} {
		_, err := pool.New(o)
		require.ErrorContains(t, err, want)
	}
	for _, o := range []pool.Options{
		{Addr: "a:1"},
		{Addr: "a:65535"},
		{Addr: "a:redis"},
		{Addr: "/s", Network: "unix"},
		{Addr: "x", Network: "mem", DialFunc: blackHole},
		{Addr: "a:1", DialTimeout: -1, MaxIdle: -1, IdleTimeout: -1, MaxAge: -1, KeepAlive: -1, UserTimeout: -1},
		{Addr: "/s", Network: "unix", TLS: &tls.Config{ServerName: "x.test"}},
	} {
		p, err := pool.New(o)
		require.NoError(t, err)
		require.NoError(t, p.Close())
		<-p.Done()
	}
}

// An option that is validated and then reaches nothing is a bug no other test sees. Every field needs a probe
// that sees the option act on a real Lease or Put.
//
// Covers: S1-25
func TestEveryOptionReachesWhatItIsFor(t *testing.T) {
	ok := func(context.Context, *pool.Dial) error { return nil }
	probes := map[string]func(t *testing.T, s *peer){
		"Network": func(t *testing.T, s *peer) {
			p := newPool(t, pool.Options{Network: "mem", DialFunc: func(ctx context.Context, n, a string) (net.Conn, error) {
				require.Equal(t, "mem", n)
				return s.dial(ctx, n, a)
			}})
			p.Put(lease(t, p))
		},
		"Addr": func(t *testing.T, s *peer) {
			p := newPool(t, pool.Options{Addr: "x.test:7", DialFunc: func(ctx context.Context, n, a string) (net.Conn, error) {
				require.Equal(t, "x.test:7", a)
				return s.dial(ctx, n, a)
			}})
			p.Put(lease(t, p))
		},
		"DialFunc": func(t *testing.T, s *peer) {
			p := newPool(t, pool.Options{DialFunc: s.dial})
			p.Put(lease(t, p))
			require.Equal(t, 1, s.dials())
		},
		"TLS": func(t *testing.T, s *peer) {
			names := make(chan string, 1)
			dial := func(ctx context.Context, n, a string) (net.Conn, error) {
				c, err := s.dial(ctx, n, a)
				go func() { // a server that learns the name the client asks for, and hangs up
					_ = tls.Server(s.mu.remote[0], &tls.Config{
						GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
							names <- h.ServerName
							return nil, errBoom
						},
					}).HandshakeContext(context.Background())
					_ = s.mu.remote[0].Close()
				}()
				return c, err
			}
			p := newPool(t, pool.Options{DialFunc: dial, TLS: &tls.Config{}})
			_, err := p.Lease(context.Background())
			require.Error(t, err)
			require.Equal(t, "peer.test", <-names)
		},
		"DialTimeout": func(t *testing.T, s *peer) {
			p := newPool(t, pool.Options{DialFunc: blackHole, DialTimeout: time.Minute})
			start := time.Now()
			_, err := p.Lease(context.Background())
			requireDialTimeout(t, err, pool.PhaseConnect)
			require.Equal(t, time.Minute, time.Since(start))
		},
		"Credentials": func(t *testing.T, s *peer) {
			var got []string
			p := newPool(t, pool.Options{
				DialFunc: s.dial, Credentials: func(context.Context) (string, string, error) { return "u", "p", nil },
				Handshake: func(_ context.Context, d *pool.Dial) error {
					got = append(got, d.Username, d.Password)
					return nil
				},
			})
			p.Put(lease(t, p))
			require.Equal(t, []string{"u", "p"}, got)
		},
		"Handshake": func(t *testing.T, s *peer) {
			n := &numbered{}
			p := newPool(t, pool.Options{DialFunc: s.dial, Handshake: n.handshake})
			c := lease(t, p)
			require.Equal(t, 1, c.Session)
			p.Put(c)
		},
		"OnConnect": func(t *testing.T, s *peer) {
			var seen *pool.Conn
			p := newPool(t, pool.Options{DialFunc: s.dial, Handshake: ok, OnConnect: func(_ context.Context, c *pool.Conn) error {
				seen = c
				return nil
			}})
			c := lease(t, p)
			require.Equal(t, c, seen)
			p.Put(c)
		},
		"OnPut": func(t *testing.T, s *peer) {
			var seen *pool.Conn
			p := newPool(t, pool.Options{DialFunc: s.dial, OnPut: func(c *pool.Conn) error { seen = c; return nil }})
			c := lease(t, p)
			p.Put(c)
			require.Equal(t, c, seen)
		},
		"Size": func(t *testing.T, s *peer) {
			p := newPool(t, pool.Options{DialFunc: s.dial, Size: 3, FailWhenFull: true})
			requireRoomFor(t, p, 3)
			requireRoomFor(t, newPool(t, pool.Options{DialFunc: s.dial, FailWhenFull: true}), 10)
		},
		"FailWhenFull": func(t *testing.T, s *peer) {
			requireRoomFor(t, newPool(t, pool.Options{DialFunc: s.dial, Size: 1, FailWhenFull: true}), 1)
		},
		"MaxIdle": func(t *testing.T, s *peer) {
			p := newPool(t, pool.Options{DialFunc: s.dial, MaxIdle: 1})
			a, b := lease(t, p), lease(t, p)
			p.Put(a)
			p.Put(b)
			require.Equal(t, 1, p.Stats().Idle)
		},
		"IdleTimeout": func(t *testing.T, s *peer) { requireReaped(t, s, pool.Options{IdleTimeout: time.Hour}, time.Hour) },
		"MaxAge": func(t *testing.T, s *peer) {
			requireReaped(t, s, pool.Options{MaxAge: time.Minute}, time.Minute)
		},
		"BackoffMin": func(t *testing.T, s *peer) {
			requireMeanBackoff(t, s, pool.Options{BackoffMin: time.Hour, BackoffMax: time.Hour}, time.Hour/2)
		},
		"BackoffMax": func(t *testing.T, s *peer) {
			requireMeanBackoff(t, s, pool.Options{BackoffMax: time.Minute}, time.Minute/2)
		},
		// These two act on real sockets: see TestKeepAliveAndUserTimeoutReachTheSocket.
		"KeepAlive":   nil,
		"UserTimeout": nil,
	}
	fields := reflect.TypeFor[pool.Options]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		probe, ok := probes[name]
		require.True(t, ok, "Options.%s has no probe", name)
		if probe == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { probe(t, &peer{}) })
		})
	}
	require.Len(t, probes, fields.NumField(), "a probe without its field")
}

func requireRoomFor(t *testing.T, p *pool.Pool, n int) {
	t.Helper()
	for range n {
		c := lease(t, p)
		defer p.Put(c)
	}
	_, err := p.Lease(context.Background())
	require.ErrorIs(t, err, pool.ErrFull)
}

func requireReaped(t *testing.T, s *peer, o pool.Options, after time.Duration) {
	t.Helper()
	o.DialFunc = s.dial
	p := newPool(t, o)
	p.Put(lease(t, p))
	time.Sleep(after - 1)
	require.Equal(t, 1, s.open())
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	require.Zero(t, s.open())
}

func requireMeanBackoff(t *testing.T, s *peer, o pool.Options, mean time.Duration) {
	t.Helper()
	s.failWith(errBoom)
	o.DialFunc = s.dial
	p := newPool(t, o)
	var gaps []time.Duration
	for range 400 {
		start := time.Now()
		_, err := p.Lease(context.Background())
		require.ErrorIs(t, err, errBoom)
		gaps = append(gaps, time.Since(start))
	}
	require.LessOrEqual(t, slices.Max(gaps), 2*mean)
	var sum time.Duration
	for _, g := range gaps[20:] { // past the growth
		sum += g
	}
	require.InDelta(t, 1, float64(sum)/380/float64(mean), 0.25, "the mean of full jitter is half the bound")
}

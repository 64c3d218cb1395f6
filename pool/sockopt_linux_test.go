package pool_test

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/fdengine/fullduplex/pool"
)

func sockopt(t *testing.T, c net.Conn, level, opt int) int {
	t.Helper()
	rc, err := c.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	var v int
	var got error
	require.NoError(t, rc.Control(func(fd uintptr) { v, got = unix.GetsockoptInt(int(fd), level, opt) }))
	require.NoError(t, got)
	return v
}

// Covers: S1-25
func TestKeepAliveAndUserTimeoutReachTheSocket(t *testing.T) {
	addr := listen(t, drain)
	own := func(ctx context.Context, n, a string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, n, a)
	}
	for name, tc := range map[string]struct {
		o                                   pool.Options
		alive, idle, interval, userTimeoutM int
	}{
		"defaults":    {pool.Options{}, 1, 15, 5, 30_000},
		"set":         {pool.Options{KeepAlive: 60 * time.Second, UserTimeout: 7 * time.Second}, 1, 60, 20, 7_000},
		"none":        {pool.Options{KeepAlive: -1, UserTimeout: -1}, 0, 0, 0, 0},
		"own dialer":  {pool.Options{DialFunc: own, KeepAlive: 3 * time.Second}, 1, 3, 1, 30_000},
		"none on own": {pool.Options{DialFunc: own, KeepAlive: -1}, 0, 0, 0, 30_000},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Addr = addr
			p := newPool(t, tc.o)
			c := lease(t, p)
			defer p.Put(c)
			require.Equal(t, tc.alive, sockopt(t, c.Conn, unix.SOL_SOCKET, unix.SO_KEEPALIVE))
			require.Equal(t, tc.userTimeoutM, sockopt(t, c.Conn, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT))
			if tc.alive == 1 {
				require.Equal(t, tc.idle, sockopt(t, c.Conn, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE))
				require.Equal(t, tc.interval, sockopt(t, c.Conn, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL))
			}
		})
	}
}

// Only what hides the socket from the engine needs it, however it was dialed.
func TestASocketUnderTLSHoldsLittleThatIsNotSent(t *testing.T) {
	cert, roots := certificate(t)
	addr := listen(t, func(c net.Conn) { echo(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})) })
	cfg := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	own := func(ctx context.Context, n, a string) (net.Conn, error) {
		return (&tls.Dialer{Config: cfg}).DialContext(ctx, n, a)
	}
	plain := listen(t, drain)
	for name, tc := range map[string]struct {
		o      pool.Options
		unsent int
	}{
		"TLS":            {pool.Options{Addr: addr, TLS: cfg}, 32 << 10},
		"TLS of its own": {pool.Options{Addr: addr, DialFunc: own}, 32 << 10},
		"plain":          {pool.Options{Addr: plain}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, tc.o)
			c := lease(t, p)
			defer p.Put(c)
			raw := c.Conn
			if s, is := raw.(*tls.Conn); is {
				raw = s.NetConn()
			}
			require.Equal(t, tc.unsent, sockopt(t, raw, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT))
		})
	}
}

// The accept queue of a listener that accepts nothing fills up, and the kernel then drops connection requests:
// a black hole on loopback.
func TestTheDefaultDialerEndsAtTheDialTimeoutInABlackHole(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	rc, err := l.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	var shrunk error
	require.NoError(t, rc.Control(func(fd uintptr) { shrunk = unix.Listen(int(fd), 0) }))
	require.NoError(t, shrunk)

	p := newPool(t, pool.Options{Addr: l.Addr().String(), DialTimeout: 100 * time.Millisecond})
	for range 10 { // the first one or two fit into the queue
		var c *pool.Conn
		if c, err = p.Lease(context.Background()); err != nil {
			break
		}
		defer p.Remove(c, nil)
	}
	requireDialTimeout(t, err, pool.PhaseConnect)

	ctx, cancel := context.WithCancel(context.Background())
	got := leaseAsync(ctx, p)
	cancel()
	require.ErrorIs(t, (<-got).err, context.Canceled)
}

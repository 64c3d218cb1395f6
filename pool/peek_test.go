package pool_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

func TestAnIdleConnectionThatTheServerClosedOrWroteToIsNotLent(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil  func(net.Conn)
		reason pool.Reason
	}{
		"closed":     {func(c net.Conn) { _ = c.Close() }, pool.ReasonPeerClosed},
		"reset":      {func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }, pool.ReasonPeerClosed},
		"stray byte": {func(c net.Conn) { _, _ = c.Write([]byte("+")) }, pool.ReasonStray},
	} {
		t.Run(name, func(t *testing.T) {
			server := make(chan net.Conn, 4)
			addr := listen(t, func(c net.Conn) { server <- c; drain(c) })
			p := newPool(t, pool.Options{Addr: addr})
			a := lease(t, p)
			spoiled := <-server
			b, c := lease(t, p), lease(t, p)
			p.Put(c)
			p.Put(b)
			p.Put(a)
			tc.spoil(spoiled)
			waitReadable(t, a.Conn)
			got := lease(t, p)
			require.Equal(t, b.Conn, got.Conn, "the next idle one")
			require.Equal(t, map[pool.Reason]uint64{tc.reason: 1}, p.Stats().Removed)
			require.Equal(t, 2, p.Stats().Open)
			p.Put(got)
		})
	}
}

func TestWhenAllIdleConnectionsAreDeadLeaseDialsInTheirPlace(t *testing.T) {
	server := make(chan net.Conn, 4)
	addr := listen(t, func(c net.Conn) { server <- c; drain(c) })
	p := newPool(t, pool.Options{Addr: addr, Size: 2})
	a, b := lease(t, p), lease(t, p)
	p.Put(a)
	p.Put(b)
	require.NoError(t, (<-server).Close())
	require.NoError(t, (<-server).Close())
	waitReadable(t, a.Conn)
	waitReadable(t, b.Conn)
	c, ok := p.TryLease()
	require.False(t, ok, "%v", c)
	require.Zero(t, p.Stats().Open)
	p.Put(lease(t, p))
	require.Equal(t, uint64(3), p.Stats().Dials)
	require.Zero(t, p.Stats().FailedRounds)
}

func TestConnectionsThatAreNoSocketsAreExaminedByAShortRead(t *testing.T) {
	server := make(chan net.Conn, 3)
	addr := listen(t, func(c net.Conn) { server <- c; drain(c) })
	p := newPool(t, pool.Options{Addr: addr, DialFunc: func(ctx context.Context, n, a string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, n, a)
		return noSocket{c}, err
	}})
	closed := lease(t, p)
	require.NoError(t, (<-server).Close())
	stray := lease(t, p)
	_, err := (<-server).Write([]byte("+"))
	require.NoError(t, err)
	quiet := lease(t, p)
	waitReadable(t, closed.Conn.(noSocket).Conn)
	waitReadable(t, stray.Conn.(noSocket).Conn)
	p.Put(quiet)
	p.Put(stray)
	p.Put(closed)
	got := lease(t, p)
	require.Equal(t, quiet.Conn, got.Conn)
	require.Equal(t, map[pool.Reason]uint64{pool.ReasonPeerClosed: 1, pool.ReasonStray: 1}, p.Stats().Removed)
	p.Put(got)
}

// noSocket hides what kind of connection it is.
type noSocket struct{ net.Conn }

func TestAUnixSocketIsDialedLentAndPeekedLikeTCP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := make(chan net.Conn, 2)
	serveOn(t, l, func(c net.Conn) { server <- c; drain(c) })
	p := newPool(t, pool.Options{Network: "unix", Addr: path})
	c, err := p.Lease(context.Background())
	require.NoError(t, err)
	require.IsType(t, (*net.UnixConn)(nil), c.Conn)
	p.Put(c)
	c = lease(t, p)
	require.Equal(t, uint64(1), p.Stats().Reuses)
	p.Put(c)
	require.NoError(t, (<-server).Close())
	waitReadable(t, c.Conn)
	p.Put(lease(t, p))
	require.Equal(t, uint64(2), p.Stats().Dials)
}

package pool_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// conn shortens the signatures of DialFuncs.
type conn = net.Conn

// gateKey marks the ctx of a Lease whose dial a test holds back.
type gateKey struct{}

type exactPipe struct{ net.Conn }

func (exactPipe) ExactWrite() bool { return true }

func TestExactWriteIsClaimedForSocketsAndByMethodOnly(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	defer near.Close()
	now := time.Now()
	require.False(t, pool.NewConn(near, near, now).ExactWrite())
	e := exactPipe{near}
	require.True(t, pool.NewConn(e, e, now).ExactWrite())
	require.False(t, pool.NewConn(e, near, now).ExactWrite(), "a layer over the socket")
	require.Equal(t, now, pool.NewConn(e, near, now).Created())
}

func TestAConnOfNoPoolHasNoOwner(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c := pool.NewConn(near, near, time.Now())
	require.Nil(t, c.Owner())
	require.False(t, c.ShouldHandoff())
	c.MarkHandoff()
	require.True(t, c.ShouldHandoff())
	require.NoError(t, c.Abort())

	p := newPool(t, pool.Options{DialFunc: (&peer{}).dial})
	p.Put(c)
	p.Remove(c, nil)
	p.Put(nil)
	require.Equal(t, uint64(3), p.Stats().Ignored)
	require.Zero(t, p.Stats().Open)
	own := lease(t, p)
	require.Same(t, p, own.Owner())
	own.Owner().Put(own)
}

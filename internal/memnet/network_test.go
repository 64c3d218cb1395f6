package memnet_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/memnet"
)

func TestADialReachesTheListenerOfItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memnet.Network{}
		a, err := n.Listen("a:1")
		require.NoError(t, err)
		defer a.Close()
		b, err := n.Listen("b:1")
		require.NoError(t, err)
		defer b.Close()
		_, err = n.Listen("a:1")
		require.ErrorIs(t, err, syscall.EADDRINUSE)

		accepted := make(chan net.Conn, 1)
		go func() {
			c, err := b.Accept()
			if err == nil {
				accepted <- c
			}
		}()
		c, err := n.Dial(t.Context(), "tcp", "b:1")
		require.NoError(t, err)
		s := <-accepted
		mustWrite(t, c, "hello")
		mustRead(t, s, "hello")
		require.Equal(t, "b:1", c.RemoteAddr().String())
		require.Equal(t, c.LocalAddr().String(), s.RemoteAddr().String())
		require.Equal(t, "b:1", b.Addr().String())
		require.Equal(t, 1, n.Open())
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
		require.Zero(t, n.Open())
		require.Equal(t, 1, n.Dials())
		require.Equal(t, 1, n.DialsTo("b:1"))
		require.Zero(t, n.DialsTo("a:1"))
	})
}

func TestADialToNobodyIsRefusedAndCounted(t *testing.T) {
	n := &memnet.Network{}
	_, err := n.Dial(t.Context(), "tcp", "nobody:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Equal(t, 1, n.DialsTo("nobody:1"))
	require.Zero(t, n.Open())
}

func TestTheDialScriptRefusesHangsOrArmsFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		n := &memnet.Network{OnDial: func(n int, c, s *memnet.Conn) error {
			switch n {
			case 1:
				return boom
			case 2:
				return memnet.ErrBlackHole
			}
			c.Out().CutAt(2, memnet.Cut{})
			return nil
		}}
		l, err := n.Listen("a")
		require.NoError(t, err)
		defer l.Close()

		_, err = n.Dial(t.Context(), "tcp", "a")
		require.ErrorIs(t, err, boom)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err = n.Dial(ctx, "tcp", "a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))

		_, err = n.Dial(ctx, "tcp", "a")
		require.ErrorIs(t, err, context.DeadlineExceeded, "a dead context dials nothing")

		c, err := n.Dial(t.Context(), "tcp", "a")
		require.NoError(t, err)
		defer c.Close()
		k, err := c.Write([]byte("abc"))
		require.Equal(t, 2, k)
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestClosingAListenerFreesItsAddressAndResetsTheUnaccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memnet.Network{}
		l, err := n.Listen("a")
		require.NoError(t, err)
		c, err := n.Dial(t.Context(), "tcp", "a")
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, l.Close())
		require.ErrorIs(t, l.Close(), net.ErrClosed)
		mustFailRead(t, c, syscall.ECONNRESET)
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		again, err := n.Listen("a")
		require.NoError(t, err)
		accepting := async(func() (int, error) { _, err := again.Accept(); return 0, err })
		pending(t, accepting)
		require.NoError(t, again.Close())
		require.ErrorIs(t, done(t, accepting).err, net.ErrClosed)
	})
}

func TestABacklogOfUnacceptedConnectionsIsBounded(t *testing.T) {
	n := &memnet.Network{}
	l, err := n.Listen("a")
	require.NoError(t, err)
	defer l.Close()
	held := 0
	for {
		c, err := n.Dial(t.Context(), "tcp", "a")
		if err != nil {
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
			break
		}
		defer c.Close()
		held++
		require.LessOrEqual(t, held, 10_000)
	}
	require.Equal(t, held, n.Open())
}

package pool_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// sockets returns both ends of a connection over loopback; near as a Conn of the pool.
func sockets(t *testing.T) (near *pool.Conn, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	raw, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	c, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close(); _ = c.Close() })
	return pool.NewConn(raw, raw, time.Now()), c.(*net.TCPConn)
}

// Covers: E-26
func TestASocketCarriesMoreThanItsBuffersHoldBothWays(t *testing.T) {
	near, far := sockets(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	go func() { _, _ = io.Copy(far, far); _ = far.CloseWrite() }()
	var wg sync.WaitGroup
	wg.Go(func() {
		n, err := near.Write(sent)
		require.NoError(t, err)
		require.Equal(t, len(sent), n)
		require.NoError(t, near.Conn.(*net.TCPConn).CloseWrite())
	})
	got, err := io.ReadAll(near)
	require.NoError(t, err)
	wg.Wait()
	require.True(t, bytes.Equal(sent, got))
}

// Covers: E-26
func TestAWriteThatItsDeadlineEndsSaysHowMuchTheKernelTook(t *testing.T) {
	near, far := sockets(t)
	sent := bytes.Repeat([]byte("x"), 64<<20)
	require.NoError(t, near.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	n, err := near.Write(sent)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var ne net.Error
	require.True(t, errors.As(err, &ne) && ne.Timeout())
	require.Greater(t, n, 0)
	require.Less(t, n, len(sent))
	require.NoError(t, near.Conn.(*net.TCPConn).CloseWrite())
	got, err := io.Copy(io.Discard, far)
	require.NoError(t, err)
	require.EqualValues(t, n, got)
}

func TestErrorsOfASocketAreThoseOfPackageNet(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(near *pool.Conn, far *net.TCPConn)
		do    func(near *pool.Conn) error
		is    error
	}{
		"end": {
			func(_ *pool.Conn, far *net.TCPConn) { _ = far.Close() },
			func(near *pool.Conn) error { _, err := near.Read(make([]byte, 1)); return err }, io.EOF,
		},
		"reset while reading": {
			func(_ *pool.Conn, far *net.TCPConn) { _ = far.SetLinger(0); _ = far.Close() },
			func(near *pool.Conn) error { _, err := near.Read(make([]byte, 1)); return err }, syscall.ECONNRESET,
		},
		"written after a reset": {
			func(near *pool.Conn, far *net.TCPConn) {
				_ = far.SetLinger(0)
				_ = far.Close()
				_, _ = near.Read(make([]byte, 1)) // the reset is here, and is told once
			},
			func(near *pool.Conn) error { _, err := near.Write([]byte("x")); return err }, syscall.EPIPE,
		},
		"closed here, read": {
			func(near *pool.Conn, _ *net.TCPConn) { _ = near.Abort() },
			func(near *pool.Conn) error { _, err := near.Read(make([]byte, 1)); return err }, net.ErrClosed,
		},
		"closed here, written": {
			func(near *pool.Conn, _ *net.TCPConn) { _ = near.Abort() },
			func(near *pool.Conn) error { _, err := near.Write([]byte("x")); return err }, net.ErrClosed,
		},
		"late": {
			func(near *pool.Conn, _ *net.TCPConn) { _ = near.SetReadDeadline(time.Unix(1, 0)) },
			func(near *pool.Conn) error { _, err := near.Read(make([]byte, 1)); return err }, os.ErrDeadlineExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := sockets(t)
			tc.spoil(near, far)
			err := tc.do(near)
			require.ErrorIs(t, err, tc.is)
			if tc.is != io.EOF {
				var op *net.OpError
				require.ErrorAs(t, err, &op)
				require.Equal(t, "tcp", op.Net)
			}
		})
	}
}

func TestAbortEndsAReadAndAWriteThatWait(t *testing.T) {
	near, _ := sockets(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := near.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
	})
	begun := make(chan struct{})
	wg.Go(func() {
		close(begun)
		for {
			if _, err := near.Write(make([]byte, 1<<20)); err != nil {
				require.ErrorIs(t, err, net.ErrClosed)
				return
			}
		}
	})
	<-begun
	require.NoError(t, near.Abort())
	wg.Wait()
}

func TestWhatEndsAWriteThatWaitsEndsThoseBehindIt(t *testing.T) {
	for name, tc := range map[string]struct {
		end func(near *pool.Conn) error
		is  error
	}{
		"Abort":      {(*pool.Conn).Abort, net.ErrClosed},
		"a deadline": {func(near *pool.Conn) error { return near.SetWriteDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := sockets(t)
			var wg sync.WaitGroup
			var taken atomic.Int64
			for range 3 {
				wg.Go(func() {
					n, err := near.Write(make([]byte, 64<<20))
					require.ErrorIs(t, err, tc.is)
					taken.Add(int64(n))
				})
			}
			_, err := io.ReadFull(far, make([]byte, 1)) // one has begun
			require.NoError(t, err)
			require.NoError(t, tc.end(near))
			wg.Wait()
			_ = near.Close() // what the kernel took still arrives
			rest, err := io.Copy(io.Discard, far)
			require.NoError(t, err)
			require.EqualValues(t, taken.Load(), 1+rest)
		})
	}
}

func TestSeveralGoroutinesMayWriteToASocketAtOnce(t *testing.T) {
	near, far := sockets(t)
	const writers, each, size = 8, 50, 3000
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range each {
				n, err := near.Write(bytes.Repeat([]byte{byte('a' + i)}, size))
				require.NoError(t, err)
				require.Equal(t, size, n)
			}
		})
	}
	got := make([]byte, writers*each*size)
	_, err := io.ReadFull(far, got)
	require.NoError(t, err)
	wg.Wait()
	for at := 0; at < len(got); at += size {
		require.Equal(t, bytes.Repeat(got[at:at+1], size), got[at:at+size], "one write is not torn by another")
	}
}

// What package net has an answer to is left to it.
func TestAnEmptySliceAndASocketWithoutADescriptorGoTheWayOfPackageNet(t *testing.T) {
	near, _ := sockets(t)
	for _, f := range []func([]byte) (int, error){near.Read, near.Write} {
		n, err := f(nil)
		require.NoError(t, err, "and it does not wait")
		require.Zero(t, n)
	}
	none := new(net.TCPConn)
	c := pool.NewConn(none, none, time.Now())
	for _, f := range []func([]byte) (int, error){c.Read, c.Write} {
		_, err := f([]byte("x"))
		require.ErrorIs(t, err, syscall.EINVAL)
	}
}

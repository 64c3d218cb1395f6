//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package pool_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// stream is a socket that can end one direction.
type stream interface {
	net.Conn
	CloseWrite() error
	SetWriteBuffer(int) error
	SetReadBuffer(int) error
}

// eachSocket runs f with both ends of a TCP and of a Unix connection whose buffers are small.
func eachSocket(t *testing.T, f func(t *testing.T, near *pool.Conn, far stream)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			addr := "127.0.0.1:0"
			if network == "unix" {
				dir, err := os.MkdirTemp("", "fd") // t.TempDir is too long for the address of a socket
				require.NoError(t, err)
				defer func() { _ = os.RemoveAll(dir) }()
				addr = filepath.Join(dir, "s")
			}
			l, err := net.Listen(network, addr)
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			raw, err := net.Dial(network, l.Addr().String())
			require.NoError(t, err)
			defer func() { _ = raw.Close() }()
			c, err := l.Accept()
			require.NoError(t, err)
			defer func() { _ = c.Close() }()
			require.NoError(t, raw.(stream).SetWriteBuffer(64<<10))
			require.NoError(t, c.(stream).SetReadBuffer(64<<10))
			near := pool.NewConn(raw, raw, time.Now())
			require.True(t, near.CanTryWrite())
			f(t, near, c.(stream))
		})
	}
}

// noise is n bytes of which none tells what the next one is.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// fill writes b until the connection takes no more, and returns how much it took.
func fill(t *testing.T, c *pool.Conn, b []byte) (taken int) {
	t.Helper()
	for {
		n, err := c.TryWrite(b[taken:])
		require.NoError(t, err)
		if taken += n; n == 0 {
			require.Less(t, taken, len(b), "the buffers hold all of it")
			return taken
		}
	}
}

func TestATriedWriteTakesAllForWhichThereIsRoom(t *testing.T) {
	eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
		sent := noise(5000)
		n, err := near.TryWrite(sent)
		require.NoError(t, err)
		require.Equal(t, len(sent), n)
		got := make([]byte, len(sent))
		_, err = io.ReadFull(far, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent, got))
	})
}

// Covers: E-26
func TestATriedWriteToAPeerThatDoesNotReadSaysExactlyWhatTheKernelTook(t *testing.T) {
	eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
		sent := noise(8 << 20)
		n, err := near.TryWrite(sent)
		require.NoError(t, err, "a part is no fault")
		require.Greater(t, n, 0)
		require.Less(t, n, len(sent))
		n += fill(t, near, sent[n:])

		got := make([]byte, n) // all that was counted is there
		_, err = io.ReadFull(far, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent[:n], got))

		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = near.Conn.(stream).CloseWrite() }()
			m, err := near.Write(sent[n:]) // and nothing that was not: the rest follows at once
			require.NoError(t, err)
			require.Equal(t, len(sent)-n, m)
		})
		rest, err := io.ReadAll(far)
		wg.Wait()
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent[n:], rest))
	})
}

// A Write that waits for the peer holds up nobody who only tries, and its bytes stay together: also when there is room
// for the bytes of the other.
func TestATriedWriteBesideOneThatWaitsReturnsAtOnceWithNothing(t *testing.T) {
	eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
		sent := noise(6 << 20)
		var wrote atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			n, err := near.Write(sent)
			wrote.Store(true)
			require.NoError(t, err)
			require.Equal(t, len(sent), n)
		})
		got := make([]byte, len(sent))
		_, err := io.ReadFull(far, got[:1]) // it has begun, and cannot come to its end
		require.NoError(t, err)
		for at := 1; at < len(got); {
			n, err := far.Read(got[at:min(len(got), at+64<<10)]) // makes room
			require.NoError(t, err)
			at += n
			if len(sent)-at > 2<<20 { // more than the buffers hold: it is still at it
				n, err = near.TryWrite([]byte("torn"))
				require.NoError(t, err)
				require.Zero(t, n)
				require.False(t, wrote.Load())
			}
		}
		wg.Wait()
		require.True(t, bytes.Equal(sent, got))
		n, err := near.TryWrite([]byte("its turn"))
		require.NoError(t, err)
		require.Equal(t, 8, n)
	})
}

// Two Writes and tries at once: the second Write went by the way of package net, which the tries did not know of, and they
// tore it; and a Write that began during a try tore that.
func TestNoWriteIsTornByATriedOneNorTearsIt(t *testing.T) {
	torn := func(t *testing.T, near *pool.Conn, far stream) {
		const writers, each, size = 3, 2, 2 << 20 // each is more than the buffers hold, so that the others come while it waits
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
		some := bytes.Repeat([]byte{'.'}, 300_000)
		ends := map[int]bool{0: true} // where a tried write ended, counted in tried bytes
		tried, read := 0, 0
		got := make([]byte, 1, writers*each*size+40*len(some))
		_, err := io.ReadFull(far, got)
		require.NoError(t, err)
		for read = 1; read < writers*each*size+tried; {
			b := got[read:min(cap(got), read+64<<10)]
			n, err := far.Read(b) // makes room
			require.NoError(t, err)
			read += n
			got = got[:read]
			if tried < 39*len(some) && read-tried < writers*each*size {
				n, err = near.TryWrite(some)
				require.NoError(t, err)
				tried += n
				ends[tried] = true
			}
		}
		wg.Wait()
		require.Len(t, got, writers*each*size+tried)
		for seen := 0; len(got) > 0; {
			who := got[0]
			n := len(got) - len(bytes.TrimLeft(got, string(who)))
			got = got[n:]
			if who != '.' {
				require.Zero(t, n%size, "a write is torn after %d bytes", n%size)
				continue
			}
			seen += n
			require.True(t, ends[seen], "a tried write is torn")
		}
	}
	for range 3 { // who meets whom is not for a test to say
		eachSocket(t, torn)
	}
}

func TestATriedWriteHeedsNoDeadline(t *testing.T) {
	eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
		require.NoError(t, near.SetWriteDeadline(time.Unix(1, 0)))
		_, err := near.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		n, err := near.TryWrite([]byte("all the same"))
		require.NoError(t, err)
		require.Equal(t, 12, n)
		got := make([]byte, 12)
		_, err = io.ReadFull(far, got)
		require.NoError(t, err)
		require.Equal(t, "all the same", string(got))
		_, err = near.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nor does it move one")
		fill(t, near, make([]byte, 8<<20))
	})
}

func TestATriedWriteOfNothingDoesNothing(t *testing.T) {
	eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
		for _, b := range [][]byte{nil, {}} {
			n, err := near.TryWrite(b)
			require.NoError(t, err)
			require.Zero(t, n)
		}
		require.NoError(t, near.Conn.(stream).CloseWrite())
		got, err := io.ReadAll(far)
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

func TestErrorsOfATriedWriteAreThoseOfPackageNet(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, near *pool.Conn, far stream)
		is    error
	}{
		"Close": {func(t *testing.T, near *pool.Conn, _ stream) { require.NoError(t, near.Close()) }, net.ErrClosed},
		"Abort": {func(t *testing.T, near *pool.Conn, _ stream) { require.NoError(t, near.Abort()) }, net.ErrClosed},
		"half a Close": {func(t *testing.T, near *pool.Conn, _ stream) {
			require.NoError(t, near.Conn.(stream).CloseWrite())
		}, syscall.EPIPE},
		"the peer is gone": {func(t *testing.T, near *pool.Conn, far stream) {
			if tcp, ok := far.(*net.TCPConn); ok {
				require.NoError(t, tcp.SetLinger(0))
			}
			require.NoError(t, far.Close())
			_, err := near.Read(make([]byte, 1)) // waits for the news, which TCP tells once
			require.Error(t, err)
		}, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
				network := near.RemoteAddr().Network()
				tc.spoil(t, near, far)
				n, err := near.TryWrite([]byte("x"))
				require.Zero(t, n)
				require.ErrorIs(t, err, tc.is)
				var op *net.OpError
				require.ErrorAs(t, err, &op)
				require.Equal(t, network, op.Net)
			})
		})
	}
}

// The peer resets a connection whose buffers are full. Nobody reads here, so it is the try that is told.
func TestATriedWriteIsToldOfAReset(t *testing.T) {
	near, far := sockets(t)
	fill(t, near, make([]byte, 64<<20))
	require.NoError(t, far.SetLinger(0))
	require.NoError(t, far.Close())
	for now := false; !now; runtime.Gosched() {
		now, _ = near.Readable()
	}
	for _, is := range []error{syscall.ECONNRESET, syscall.EPIPE} { // it is told once; then there is nobody to write to
		n, err := near.TryWrite([]byte("x"))
		require.Zero(t, n)
		require.ErrorIs(t, err, is)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "write", op.Op)
		require.Equal(t, near.LocalAddr(), op.Source)
		require.Equal(t, near.RemoteAddr(), op.Addr)
	}
}

func TestATriedWriteAllocatesNothing(t *testing.T) {
	eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
		b := make([]byte, 8)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if n, err := near.TryWrite(b); n != len(b) || err != nil {
				panic("there was room")
			}
		}), "with room")
		fill(t, near, make([]byte, 8<<20))
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := near.TryWrite(b); err != nil {
				panic(err)
			}
		}), "without room")
	})
}

func TestALoanOfASocketCanTryAndOneWithTLSCannot(t *testing.T) {
	p := newPool(t, pool.Options{Addr: listen(t, echo)})
	for range 2 { // a new connection, and the same lent again
		c := lease(t, p)
		require.True(t, c.CanTryWrite())
		n, err := c.TryWrite([]byte("x"))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		_, err = io.ReadFull(c, make([]byte, 1))
		require.NoError(t, err)
		p.Put(c)
	}
	cert, roots := certificate(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	require.NoError(t, err)
	serveOn(t, l, echo)
	secret := newPool(t, pool.Options{Addr: l.Addr().String(), TLS: &tls.Config{RootCAs: roots}})
	c := lease(t, secret)
	require.False(t, c.CanTryWrite(), "a socket, but not its bytes")
	secret.Put(c)
}

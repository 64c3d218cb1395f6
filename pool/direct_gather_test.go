//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package pool_test

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

func TestAReadThatGathersWaitsForSoManyBytesAndNoMore(t *testing.T) {
	near, far := sockets(t)
	require.True(t, near.Gather(100))
	_, err := far.Write(make([]byte, 60))
	require.NoError(t, err)
	require.NoError(t, near.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	b := make([]byte, 1000)
	_, err = near.Read(b)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "60 bytes are not 100")
	require.NoError(t, near.SetReadDeadline(time.Time{}))
	var wg sync.WaitGroup
	wg.Go(func() { _, err = far.Write(make([]byte, 50)) })
	n, rerr := near.Read(b)
	wg.Wait()
	require.NoError(t, err)
	require.NoError(t, rerr)
	require.Equal(t, 110, n)
	_, err = far.Write(make([]byte, 100))
	require.NoError(t, err)
	n, err = near.Read(b)
	require.NoError(t, err)
	require.Equal(t, 100, n)
	n, err = near.Write(make([]byte, 7))
	require.NoError(t, err)
	require.Equal(t, 7, n)
}

func TestWhatEndsAWaitForSeveralBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(near *pool.Conn, far *net.TCPConn)
		n    int
		then error
	}{
		"fewer are enough": {func(near *pool.Conn, _ *net.TCPConn) { near.Gather(1) }, 60, nil},
		"the end":          {func(_ *pool.Conn, far *net.TCPConn) { _ = far.CloseWrite() }, 60, io.EOF},
		"a reset":          {func(_ *pool.Conn, far *net.TCPConn) { _ = far.SetLinger(0); _ = far.Close() }, 0, syscall.ECONNRESET},
		"Abort":            {func(near *pool.Conn, _ *net.TCPConn) { _ = near.Abort() }, 0, net.ErrClosed},
	} {
		for _, when := range []string{"while it waits", "before it waits"} {
			t.Run(name+" "+when, func(t *testing.T) {
				near, far := sockets(t)
				require.True(t, near.Gather(100))
				_, err := far.Write(make([]byte, 60))
				require.NoError(t, err)
				var wg sync.WaitGroup
				if when == "before it waits" {
					tc.end(near, far)
				} else {
					wg.Add(1) // after a time in which the read below is likely to have begun; both orders must do
					time.AfterFunc(20*time.Millisecond, func() { defer wg.Done(); tc.end(near, far) })
				}
				b := make([]byte, 1000)
				if tc.then != net.ErrClosed {
					require.NoError(t, near.SetReadDeadline(time.Now().Add(10*time.Second)))
				}
				n, err := near.Read(b)
				if n == 60 && tc.n == 0 { // the reset came after a look at the bytes
					n, err = near.Read(b)
				}
				wg.Wait()
				if n > 0 {
					require.NoError(t, err)
					require.Equal(t, tc.n, n)
					if tc.then == nil {
						return
					}
					n, err = near.Read(b)
				}
				require.Zero(t, n)
				require.ErrorIs(t, err, tc.then)
			})
		}
	}
}

func TestPutReturnsToReadsThatWaitForAnything(t *testing.T) {
	server := make(chan net.Conn, 1)
	addr := listen(t, func(c net.Conn) { server <- c; drain(c) })
	p := newPool(t, pool.Options{Addr: addr})
	c := lease(t, p)
	require.True(t, c.Gather(100))
	p.Put(c)
	c = lease(t, p)
	_, err := (<-server).Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	n, err := c.Read(make([]byte, 10))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	p.Put(c)
}

func TestOnlyASocketGathers(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	require.False(t, pool.NewConn(near, near, time.Now()).Gather(10))
}

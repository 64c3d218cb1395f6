//go:build linux || darwin

package pool_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/fdengine/fullduplex/pool"
)

// waitEvent returns when something has happened to c that a read would see. Unlike waitReadable it looks at nothing,
// so that an error of the socket stays where it is.
func waitEvent(t *testing.T, c net.Conn) {
	t.Helper()
	rc, err := c.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, rc.Read(func(fd uintptr) bool {
		// It asks, because what happened before this call wakes nobody any more.
		at := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(at, 0)
		return err == nil && n > 0
	}))
}

func TestAnIdleSocketThatWasResetOrClosedUnderneathIsNotLent(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, near, far net.Conn){
		"reset": func(t *testing.T, near, far net.Conn) {
			require.NoError(t, far.(*net.TCPConn).SetLinger(0))
			require.NoError(t, far.Close())
			waitEvent(t, near)
		},
		"closed": func(t *testing.T, near, _ net.Conn) { require.NoError(t, near.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			server := make(chan net.Conn, 2)
			var near net.Conn
			p := newPool(t, pool.Options{
				Addr: listen(t, func(c net.Conn) { server <- c; drain(c) }),
				DialFunc: func(ctx context.Context, n, a string) (c net.Conn, err error) {
					c, err = (&net.Dialer{}).DialContext(ctx, n, a)
					if near == nil {
						near = c
					}
					return c, err
				},
			})
			c := lease(t, p)
			p.Put(c)
			spoil(t, near, <-server)
			next := lease(t, p)
			require.NotSame(t, near, next.Conn)
			require.Equal(t, uint64(2), p.Stats().Dials)
			want := map[string]pool.Reason{"reset": pool.ReasonPeerClosed, "closed": pool.ReasonCut}
			require.Equal(t, map[pool.Reason]uint64{want[name]: 1}, p.Stats().Removed)
			p.Put(next)
		})
	}
}

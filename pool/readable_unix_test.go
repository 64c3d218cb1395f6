//go:build unix

package pool_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// waitReadable returns when c has something to read, or its end; it consumes nothing.
func waitReadable(t *testing.T, c net.Conn) {
	t.Helper()
	rc, err := c.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	err = rc.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	})
	require.NoError(t, err)
}

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package pool

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peekSocket reads one byte with MSG_PEEK and without blocking; ok is false when raw is no socket. It uses
// Control, not Read, since Read would wait for the read deadline and for other readers.
func peekSocket(raw net.Conn) (ok bool, err error) {
	sc, isSocket := raw.(syscall.Conn)
	if !isSocket {
		return false, nil
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return true, err
	}
	var got int
	var peeked error
	err = rc.Control(func(fd uintptr) {
		var b [1]byte
		for {
			got, _, peeked = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if peeked != unix.EINTR {
				return
			}
		}
	})
	switch {
	case err != nil:
		return true, err
	case peeked == unix.EAGAIN:
		return true, nil
	case peeked != nil:
		return true, peeked
	case got == 0:
		return true, io.EOF
	}
	return true, errStray
}

package pool

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout sets TCP_USER_TIMEOUT (RFC 5482): how long sent data may stay unacknowledged.
func setUserTimeout(c *net.TCPConn, d time.Duration) error {
	return setTCP(c, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
}

// setUnsent sets TCP_NOTSENT_LOWAT (tcp(7)): the socket is writable while fewer bytes than that, of what it has, have not been sent. A kernel
// that does not know it is not an error: there slow links need a longer WriteTimeout.
func setUnsent(c *net.TCPConn, n int) error {
	err := setTCP(c, unix.TCP_NOTSENT_LOWAT, n)
	if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

func setTCP(c *net.TCPConn, option, value int) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = rc.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, option, value)
	})
	if err != nil {
		return err
	}
	return set
}

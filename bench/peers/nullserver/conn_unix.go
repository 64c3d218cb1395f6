//go:build unix

package nullserver

import (
	"io"
	"net"
	"os"
	"syscall"
)

// blocking returns c as a descriptor that blocks in the kernel: a thread of its own per connection is cheaper for a
// server of few connections than the poller. done gives the descriptor back.
func blocking(c net.Conn) (rw io.ReadWriter, done func(), err error) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c, func() {}, nil
	}
	f, err := t.File()
	if err != nil {
		return nil, nil, err
	}
	fd := int(f.Fd())
	if err := syscall.SetNonblock(fd, false); err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return &descriptor{f, fd}, func() { _ = f.Close() }, nil
}

type descriptor struct {
	f  *os.File // keeps fd open
	fd int
}

// Read blocks the thread.
func (d *descriptor) Read(b []byte) (int, error) {
	for {
		n, err := syscall.Read(d.fd, b)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// Write writes all of b.
func (d *descriptor) Write(b []byte) (int, error) {
	for n := 0; n < len(b); {
		m, err := syscall.Write(d.fd, b[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		n += m
	}
	return len(b), nil
}

// endConn makes the blocked read of c return: closing alone would not, since the descriptor is a copy.
func endConn(c net.Conn) error {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseRead()
		_ = t.CloseWrite()
	}
	return nil
}

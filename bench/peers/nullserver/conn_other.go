//go:build !unix

package nullserver

import (
	"io"
	"net"
)

func blocking(c net.Conn) (rw io.ReadWriter, done func(), err error) { return c, func() {}, nil }

func endConn(c net.Conn) error { return c.Close() }

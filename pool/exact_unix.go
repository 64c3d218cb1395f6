//go:build unix

package pool

import "net"

func exactWrite(c net.Conn) bool {
	switch v := c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	case interface{ ExactWrite() bool }:
		return v.ExactWrite()
	}
	return false
}

//go:build !unix

package pool

import "net"

func exactWrite(c net.Conn) bool {
	v, ok := c.(interface{ ExactWrite() bool })
	return ok && v.ExactWrite()
}

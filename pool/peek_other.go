//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package pool

import "net"

// peekSocket: no socket can be peeked here.
func peekSocket(net.Conn) (ok bool, err error) { return false, nil }

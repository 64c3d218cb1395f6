//go:build !linux

package pool

import (
	"net"
	"time"
)

// setUserTimeout does nothing: the option is linux's. Keepalive alone finds a dead peer here.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }

// setUnsent does nothing likewise.
func setUnsent(*net.TCPConn, int) error { return nil }

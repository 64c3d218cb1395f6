//go:build !windows

package pool

import (
	"errors"
	"syscall"
)

func peerReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

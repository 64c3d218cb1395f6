package pool

import (
	"errors"

	"golang.org/x/sys/windows"
)

func peerReset(err error) bool {
	return errors.Is(err, windows.WSAECONNRESET)
}

//go:build !amd64 && !arm64

package carry

import "unsafe"

// prefetchLines does nothing here.
func prefetchLines(unsafe.Pointer) {}

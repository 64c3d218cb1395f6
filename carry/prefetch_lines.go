//go:build amd64 || arm64

package carry

import "unsafe"

// prefetchLines asks the CPU for the cache line of 64 bytes that p lies in and for the one behind it, to be written. It does not
// wait and changes nothing; an address that is not mapped does no harm.
//
//go:noescape
func prefetchLines(p unsafe.Pointer)

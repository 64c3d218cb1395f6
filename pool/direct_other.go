//go:build !(linux && (amd64 || arm64 || riscv64 || loong64))

package pool

import "net"

// direct: here all bytes go through package net.
type direct struct{}

func directFor(_, _ net.Conn) *direct { return nil }

func (*direct) read([]byte) (int, error)     { panic("pool: invariant: no direct connection here") }
func (*direct) write([]byte) (int, error)    { panic("pool: invariant: no direct connection here") }
func (*direct) tryWrite([]byte) (int, error) { panic("pool: invariant: no direct connection here") }
func (*direct) tryWriteParts([]byte, [][]byte) (int, error) {
	panic("pool: invariant: no direct connection here")
}
func (*direct) gather(int) bool { panic("pool: invariant: no direct connection here") }
func (*direct) readable() bool  { panic("pool: invariant: no direct connection here") }

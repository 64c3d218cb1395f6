//go:build linux && (amd64 || arm64 || riscv64 || loong64) && race

package pool

import "syscall"

// Under the race detector bytes go through package syscall, which tells it that what was written to a socket happened
// before what was read from one. Else a program with client and server in one process would be told of races that
// are none.

func sendNow(fd uintptr, b []byte) (int, syscall.Errno) { return told(syscall.Write, fd, b) }

func receiveNow(fd uintptr, b []byte) (int, syscall.Errno) { return told(syscall.Read, fd, b) }

// vector: here each part is a call.
type vector struct{}

func sendParts(fd uintptr, _ *vector, b []byte, _ [][]byte) (int, syscall.Errno) {
	return sendNow(fd, b)
}

func told(call func(int, []byte) (int, error), fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, err := call(int(fd), b)
		if e, _ := err.(syscall.Errno); e != syscall.EINTR {
			return max(n, 0), e
		}
	}
}

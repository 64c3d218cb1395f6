//go:build linux && (amd64 || arm64 || riscv64 || loong64) && !race

package pool

import (
	"runtime"
	"syscall"
	"unsafe"
)

// sendNow and receiveNow are sendto(2) and recvfrom(2) that neither wait nor are interrupted.
func sendNow(fd uintptr, b []byte) (int, syscall.Errno) {
	return onSocket(syscall.SYS_SENDTO, fd, b, syscall.MSG_NOSIGNAL)
}

func receiveNow(fd uintptr, b []byte) (int, syscall.Errno) {
	return onSocket(syscall.SYS_RECVFROM, fd, b, 0)
}

func onSocket(call, fd uintptr, b []byte, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			flags|syscall.MSG_DONTWAIT, 0, 0)
		if e != syscall.EINTR {
			runtime.KeepAlive(b)
			if e != 0 {
				return 0, e
			}
			return int(n), 0
		}
	}
}

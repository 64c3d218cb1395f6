//go:build linux && (amd64 || arm64 || riscv64 || loong64) && !race

package pool

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
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

// vector is the argument of sendmsg(2).
type vector struct {
	msg unix.Msghdr
	iov [vectorParts]unix.Iovec
}

const vectorParts = 16

// sendParts is sendNow for several parts, as many as a vector has room for and sendMax allows, but at least the first.
func sendParts(fd uintptr, v *vector, b []byte, more [][]byte) (int, syscall.Errno) {
	defer func() { v.iov = [vectorParts]unix.Iovec{} }() // it is not to keep what was sent
	k, size := 0, 0
	for next := b; ; next, more = more[0], more[1:] {
		if k > 0 && size+len(next) > sendMax {
			break
		}
		if len(next) > 0 {
			v.iov[k].Base = unsafe.SliceData(next)
			v.iov[k].SetLen(min(len(next), sendMax))
			size += len(next)
			k++
		}
		if len(more) == 0 || k == vectorParts {
			break
		}
	}
	v.msg.Iov = &v.iov[0]
	v.msg.SetIovlen(k)
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&v.msg)), syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT, 0, 0, 0)
		if e != syscall.EINTR {
			runtime.KeepAlive(v)
			if e != 0 {
				return 0, e
			}
			return int(n), 0
		}
	}
}

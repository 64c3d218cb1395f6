package pause

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// alarm is a timer of the kernel that becomes readable when it is due: see timerfd_create(2).
type alarm struct {
	fd   uintptr
	file *os.File
	buf  [8]byte
}

const clockMonotonic = 1

func (a *alarm) open() error {
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return os.NewSyscallError("timerfd_create", errno)
	}
	a.fd, a.file = fd, os.NewFile(fd, "timer")
	return nil
}

// Close gives the descriptor back.
func (a *alarm) Close() error { return a.file.Close() }

func (a *alarm) wait(d time.Duration) error {
	spec := [2]syscall.Timespec{{}, syscall.NsecToTimespec(int64(d))} // no period
	if _, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, a.fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); errno != 0 {
		return os.NewSyscallError("timerfd_settime", errno)
	}
	_, err := a.file.Read(a.buf[:])
	return err
}

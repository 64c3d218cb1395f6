//go:build unix

package testserver

import (
	"os"
	"syscall"
)

var (
	stopSignal os.Signal = syscall.SIGSTOP
	contSignal os.Signal = syscall.SIGCONT
)

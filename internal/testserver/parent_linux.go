package testserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel end the server when the test binary dies without running its cleanups.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

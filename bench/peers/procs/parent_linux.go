package procs

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel end the process when this one dies without ending it.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

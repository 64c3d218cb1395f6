//go:build !linux

package testserver

import "os/exec"

// dieWithParent can do nothing here: a test binary that is killed leaves its servers behind.
func dieWithParent(*exec.Cmd) {}

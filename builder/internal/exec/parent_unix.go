//go:build unix && !linux

package exec

import "syscall"

// dieWithParent does nothing: there is no such thing here, so that a child
// outlives a parent that is killed by SIGKILL.
func dieWithParent(*syscall.SysProcAttr) {}

//go:build unix

package component

import (
	"syscall"
	"testing"
	"time"
)

// childCPU is the processor time, user and system, of all programs that were
// run so far.
func childCPU(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

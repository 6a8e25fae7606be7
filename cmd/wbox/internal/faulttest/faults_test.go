//go:build linux

package faulttest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHostFaults is what may happen to a build on its host, over fake machines.
func TestHostFaults(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		name string
		test func(*lab)
	}{
		{"Kill9", kills},
		{"CtrlC", interrupts},
		{"FullStore", fullStore},
		{"FullOutput", fullOutput},
		{"OneStore", oneStore},
		{"OneFolder", oneFolder},
		{"OtherFileSystems", otherFileSystems},
		{"FlippedBits", flippedBits},
		{"DamagedMedium", damagedMedium},
	} {
		before := burnt()
		t.Run(c.name, func(t *testing.T) { c.test(l.in(t)) })
		t.Logf("%s took %v of processors' time", c.name, (burnt() - before).Round(time.Second))
	}
}

// burnt is what all children have taken so far.
func burnt() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

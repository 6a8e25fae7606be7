//go:build linux

package faulttest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSmallTemp bakes a box where the folder for temporary files has room for
// 10 MB: what is large lies in the store, and nothing stays behind.
func TestSmallTemp(t *testing.T) {
	l := newLab(t)
	w := l.site("small-temp")
	if err := unix.Mount("tmpfs", w.Tmp, "tmpfs", 0, "size=10m"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(w.Tmp, unix.MNT_DETACH) }) //nolint:errcheck // the test's folder goes as well
	if e := w.Build(t, nil, "--k8s", l.path(newVersion)); e.Code != 0 {
		t.Fatalf("%+v", e)
	}
	if left, err := os.ReadDir(w.Tmp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

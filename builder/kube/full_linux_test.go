package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// TestFullDisk fetches and compiles on a disk that is too small, at whichever
// point it gets full, and then on a larger one: what the failures left hurts
// nobody.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles on disks of many sizes")
	}
	dir, commits := gitRepo(t)
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=4k"); err != nil {
		t.Skip("mounting a tmpfs of limited size is not permitted here; it takes root")
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	want := map[string]string{}
	for file, b := range compileDir(t, dir, Options{CacheDir: t.TempDir()}) {
		want[file] = b.SHA256
	}
	opts := Options{CacheDir: filepath.Join(disk, "kube"), GitURL: "file://" + filepath.ToSlash(dir)}
	failed := 0
	for _, kib := range []int{40, 120, 400, 1200, 4000, 8000, 64000} {
		if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%dk", kib)); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(disk, "bin")
		src, ref, err := resolveText(t, commits["master"], opts, report.Discard)
		var bits Bits
		if err == nil {
			bits, _, err = Get(t.Context(), src, ref, opts, out, report.Discard)
		}
		switch {
		case err == nil && failed < 3:
			t.Fatalf("%d KiB were enough", kib)
		case err == nil:
			for _, b := range bits.Binaries {
				if want[b.File] == "" || b.SHA256 != want[b.File] {
					t.Errorf("%s is %s, want %s", b.File, b.SHA256, want[b.File])
				}
			}
			return
		case fault.ClassOf(err) != fault.Host:
			t.Errorf("%d KiB: got %v (class %d)", kib, err, fault.ClassOf(err))
		}
		t.Logf("%d KiB: %v", kib, err)
		failed++
		if _, err := os.Stat(filepath.Join(out, "kubelet.exe")); err == nil {
			t.Errorf("%d KiB: programs were left", kib)
		}
	}
	t.Error("64 MB were not enough")
}

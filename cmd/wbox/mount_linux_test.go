package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// canMount tries it, since root in a container may not either.
func canMount() bool {
	dir, err := os.MkdirTemp("", "wbox-mount-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if mountSmall(dir, "1m") != nil {
		return false
	}
	unmount(dir)
	return true
}

func mountSmall(dir, size string) error {
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
}

func unmount(dir string) {
	unix.Unmount(dir, unix.MNT_DETACH) //nolint:errcheck // it is a test's own
}

// Package capacity measures what this machine has left: space on the file
// system of a folder, and memory. What a system doesn't tell is unknown, which
// is no error: checks are skipped then. It is a leaf: it imports nothing of ours.
package capacity

import (
	"errors"
	"os"
	"path/filepath"
)

// Space is the room on one file system.
type Space struct {
	Free   int64  // bytes that this user may still write
	Total  int64  // bytes
	Volume string // the same for two folders on the same file system
}

// Memory is this machine's memory, or that of the container it runs in.
type Memory struct {
	Available int64 // bytes that programs can get without swapping; 0 where unknown
	Total     int64 // bytes
}

// Disk measures the file system of dir, or, where dir doesn't exist, the one
// on which it would be made: that of the nearest folder above it.
func Disk(dir string) (Space, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Space{}, err
	}
	for {
		_, err := os.Stat(abs)
		if err == nil {
			return disk(abs)
		}
		up := filepath.Dir(abs)
		if !errors.Is(err, os.ErrNotExist) || up == abs {
			return Space{}, err
		}
		abs = up
	}
}

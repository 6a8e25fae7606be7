//go:build !windows

package cas

import (
	"errors"
	"os"
)

// syncDir makes renames and creations in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFile flushes a file that may have been opened read-only.
func syncFile(f *os.File) error { return f.Sync() }

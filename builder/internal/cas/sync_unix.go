//go:build !windows

package cas

import "os"

// syncFile flushes a file that may have been opened read-only.
func syncFile(f *os.File) error { return f.Sync() }

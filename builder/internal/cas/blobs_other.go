//go:build !linux

package cas

import (
	"errors"
	"os"
)

// clone is for Linux only: macOS clones by path, before the file exists.
func clone(_, _ *os.File) error { return errors.ErrUnsupported }

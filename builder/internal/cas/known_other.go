//go:build !linux && !darwin && !windows

package cas

import (
	"io/fs"
	"os"
)

// identity knows nothing more here.
func identity(*os.File, fs.FileInfo, *Known) error { return nil }

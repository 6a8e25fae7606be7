package cas

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
)

// removeSealed removes a folder, sealed files included: Windows refuses to
// remove read-only files.
func removeSealed(dir string) error {
	if runtime.GOOS == "windows" {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				return os.Chmod(p, 0o600)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// syncTree flushes every file and folder below dir.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return atomicfile.SyncDir(p)
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		return errors.Join(syncFile(f), f.Close())
	})
}

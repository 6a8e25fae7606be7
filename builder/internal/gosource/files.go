package gosource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// errNotRegular is for what looks like a file by its name only.
var errNotRegular = errors.New("it is no regular file")

// OpenRegular opens a file of a user's folder. It looks first: opening a pipe
// that nobody writes to never ends.
func OpenRegular(path string) (*os.File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return os.Open(path)
}

// ReadSome reads the first bytes of a file of a user's folder, up to limit.
func ReadSome(path string, limit int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// MoveFile moves a file to a place that doesn't exist yet, by rename where
// both lie on one file system.
func MoveFile(from, to string) error {
	if err := os.Rename(from, to); err == nil {
		return nil
	}
	if err := CopyFile(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// CopyFile copies a file to a place that doesn't exist yet.
func CopyFile(from, to string) error {
	src, err := OpenRegular(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err == nil {
		err = dst.Sync()
	}
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(to)
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

// FileReader reads a file of a tree by its path in it, with slashes.
type FileReader func(name string) ([]byte, error)

// InDir reads the files of a tree in a folder.
func InDir(dir string) FileReader {
	return func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))) }
}

// copyTree copies what the go command may read of a source tree.
func copyTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && name != "." && hasAnyPrefix(d.Name(), ".", "_"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, filepath.Join(to, name))
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o644)
	})
}

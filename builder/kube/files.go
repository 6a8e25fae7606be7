package kube

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// errNotRegular is for what looks like a file by its name only.
var errNotRegular = errors.New("it is no regular file")

// openRegular opens a file of a user's folder. It looks first: opening a pipe
// that nobody writes to never ends.
func openRegular(path string) (*os.File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return os.Open(path)
}

// readSome reads the first bytes of a file of a user's folder, up to limit.
func readSome(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// moveFile moves a file to a place that doesn't exist yet, by rename where
// both lie on one file system.
func moveFile(from, to string) error {
	if err := os.Rename(from, to); err == nil {
		return nil
	}
	if err := copyFile(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// copyFile copies a file to a place that doesn't exist yet.
func copyFile(from, to string) error {
	src, err := openRegular(from)
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

func sortBinaries(bins []Binary) {
	slices.SortFunc(bins, func(a, b Binary) int { return strings.Compare(a.File, b.File) })
}

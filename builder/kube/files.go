package kube

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

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
	src, err := os.Open(from)
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

// Package atomicfile makes files and folders appear under their final name
// complete or not at all: written beside it under a temporary name, flushed to
// the disk, checked, renamed. It must not import anything of ours.
package atomicfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/internal/ctxio"
)

// TempPrefix begins the name of every unfinished file. Whoever lists a folder
// may ignore such names; a killed process leaves them behind.
const TempPrefix = ".wbox-tmp-"

// ErrExists is wrapped by Dir's error where the final name is taken.
var ErrExists = errors.New("the name is taken")

// Unknown is the size to give to Copy where it is not known in advance.
const Unknown = int64(-1)

// Write replaces path with data.
func Write(ctx context.Context, path string, data []byte, perm fs.FileMode) error {
	return Copy(ctx, path, bytes.NewReader(data), int64(len(data)), perm)
}

// Copy replaces path with all of r. A content of another length than size is
// an error, unless size is Unknown. Whatever goes wrong, path keeps its former
// content and no temporary file stays behind.
func Copy(ctx context.Context, path string, r io.Reader, size int64, perm fs.FileMode) error {
	return Func(ctx, path, perm, func(w io.Writer) error {
		n, err := io.Copy(w, ctxio.Reader(ctx, r))
		if err == nil && size != Unknown && n != size {
			err = fmt.Errorf("got %d bytes, want %d", n, size)
		}
		return err
	})
}

// Func replaces path with what write writes, under Copy's promises. The
// temporary file is opened for the length of write only.
func Func(ctx context.Context, path string, perm fs.FileMode, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), TempPrefix+"*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close() // again, perhaps: that is harmless
			os.Remove(f.Name())
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	count := &counter{w: f}
	if err := write(count); err != nil {
		return err
	}
	if err := f.Chmod(perm); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	// What the file system holds is compared with what was handed to it, since
	// some file systems report a lack of space late.
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != count.n {
		return fmt.Errorf("the file holds %d bytes of %d", info.Size(), count.n)
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := replace(ctx, f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Rename puts a finished file of the same file system, which another program
// wrote, under its final name, which it replaces. The file is flushed first.
func Rename(ctx context.Context, finished, path string) error {
	if err := flush(finished); err != nil {
		return fmt.Errorf("flushing %s: %w", finished, err)
	}
	if err := replace(ctx, finished, path); err != nil {
		return fmt.Errorf("renaming to %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// Dir puts a finished folder of the same file system under its final name,
// after every regular file and folder in it was flushed. A final name that is
// taken by anything but an empty folder is an error that wraps ErrExists, and
// finished stays where it is.
func Dir(ctx context.Context, finished, path string) error {
	err := filepath.WalkDir(finished, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case d.IsDir():
			return SyncDir(p)
		case d.Type().IsRegular():
			return flush(p)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("flushing %s: %w", finished, err)
	}
	if err := renameDir(ctx, finished, path); err != nil {
		return fmt.Errorf("renaming to %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// renameDir renames a folder, never over one that holds something: POSIX
// refuses that by itself, Windows refuses any existing name.
func renameDir(ctx context.Context, finished, path string) error {
	if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
		_ = os.Remove(path) // where it can't be removed, the rename says why
	}
	err := rename(ctx, finished, path)
	if err == nil {
		return nil
	}
	if _, statErr := os.Lstat(path); statErr == nil {
		return fmt.Errorf("%w: %w", ErrExists, err)
	}
	return err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

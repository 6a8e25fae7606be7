package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Save writes the archive to a file, which appears when it is complete: a run
// that fails leaves what was there before. Existing content is replaced; a
// folder is a *fault.Problem of class fault.Usage, and a place that can't be
// written to one of class fault.Host.
func Save(ctx context.Context, path string, entries []Entry, opts Options) (saved []Saved, err error) {
	err = whole(path, func(w io.Writer) error {
		saved, err = Write(ctx, w, entries, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return saved, nil
}

// WriteFile writes something small that goes with an archive, as Save does.
func WriteFile(path string, data []byte) error {
	return whole(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Check says early whether Save could write to path.
func Check(path string) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return &fault.Problem{Class: fault.Usage, Field: "-o", Value: path, Why: "is no file", Fix: "name a file, such as images.tar"}
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPattern)
	if err != nil {
		return unwritable(path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// tempPattern names unfinished files; whoever lists a folder may ignore such.
const tempPattern = ".wbox-tmp-*"

// whole replaces path with what write writes, or leaves it as it is.
func whole(path string, write func(io.Writer) error) (err error) {
	if err := Check(path); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPattern)
	if err != nil {
		return unwritable(path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	buffer := bufio.NewWriterSize(f, 1<<20)
	if err = write(buffer); err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return unwritable(path, err)
		}
		return err
	}
	if err = errors.Join(buffer.Flush(), f.Chmod(0o644), f.Sync()); err != nil {
		return unwritable(path, err)
	}
	if err = f.Close(); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("keeping %s: %w", path, err)
	}
	return nil
}

func unwritable(path string, err error) error {
	return &fault.Problem{Class: fault.Host, Field: "-o", Value: path, Why: "can't be written", Err: err, Fix: "make room there, or name another place"}
}

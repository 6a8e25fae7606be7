package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, &fault.Problem{Class: fault.Usage, Field: "-o", Value: path, Why: "is no file", Fix: "name a file, such as images.tar"}
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".wbox-tmp-*")
	if err != nil {
		return nil, unwritable(path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	buffer := bufio.NewWriterSize(f, 1<<20)
	if saved, err = Write(ctx, buffer, entries, opts); err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return nil, unwritable(path, err)
		}
		return nil, err
	}
	if err = errors.Join(buffer.Flush(), f.Chmod(0o644), f.Sync()); err != nil {
		return nil, unwritable(path, err)
	}
	if err = f.Close(); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return nil, fmt.Errorf("keeping %s: %w", path, err)
	}
	return saved, nil
}

func unwritable(path string, err error) error {
	return &fault.Problem{Class: fault.Host, Field: "-o", Value: path, Why: "can't be written", Err: err, Fix: "make room there, or name another place"}
}

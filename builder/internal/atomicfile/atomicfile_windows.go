package atomicfile

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// Virus scanners and indexers open new files for a moment, and a rename fails
// meanwhile. The whole wait is bounded by retries * pause.
const (
	retries = 40
	pause   = 50 * time.Millisecond
)

// replace renames over whatever file is there.
func replace(ctx context.Context, from, to string) error {
	return move(ctx, from, to, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

func rename(ctx context.Context, from, to string) error {
	return move(ctx, from, to, windows.MOVEFILE_WRITE_THROUGH)
}

func move(ctx context.Context, from, to string, flags uint32) error {
	f, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	t, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i := 0; ; i++ {
		err := windows.MoveFileEx(f, t, flags)
		if err == nil {
			return nil
		}
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !busy || i == retries {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// flush makes a file's content durable. FlushFileBuffers needs write access.
func flush(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// SyncDir does nothing: Windows has no flush for folders, NTFS journals renames, and
// MOVEFILE_WRITE_THROUGH has made ours durable.
func SyncDir(string) error { return nil }

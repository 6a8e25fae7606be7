//go:build !windows

package atomicfile

import (
	"context"
	"os"
)

// replace renames over whatever file is there.
func replace(_ context.Context, from, to string) error { return os.Rename(from, to) }

func rename(_ context.Context, from, to string) error { return os.Rename(from, to) }

// flush makes a file's content durable.
func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// SyncDir makes a folder's entries durable: without it, a rename may be undone
// by a power cut.
func SyncDir(path string) error { return flush(path) }

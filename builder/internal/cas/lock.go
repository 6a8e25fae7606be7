package cas

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// Lock is held on one name. It is a lock of the kernel's and dies with the
// process that holds it; the file that is left behind blocks nobody.
type Lock struct {
	f *os.File
}

// Unlock lets go of the lock.
func (l *Lock) Unlock() { l.f.Close() }

// Note leaves a text about the holder in the lock's file, for messages: it
// locks nothing, and may be missing.
func (l *Lock) Note(text string) {
	if l.f.Truncate(0) == nil {
		l.f.WriteAt([]byte(text+"\n"), 0) //nolint:errcheck // said above
	}
}

// ReadNote returns what the holder of the lock at path has noted, or "".
func ReadNote(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 200))
	if err != nil || !utf8.Valid(b) {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// TryLock takes the lock named name, or returns nil if another holds it.
func (s *Store) TryLock(name string) (*Lock, error) {
	return TryLockFile(filepath.Join(s.root, "locks", name))
}

// TryLockFile takes a lock on the file at path, which it makes, or returns nil
// if another holds it.
func TryLockFile(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	ok, err := tryLock(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("taking the lock %s: %w", path, err)
	}
	if !ok {
		f.Close()
		return nil, nil
	}
	return &Lock{f}, nil
}

// Lock waits for the lock named name. waiting is called once if it is held
// by another.
func (s *Store) Lock(ctx context.Context, name string, waiting func()) (*Lock, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for first := true; ; first = false {
		l, err := s.TryLock(name)
		if l != nil || err != nil {
			return l, err
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

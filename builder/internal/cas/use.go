package cas

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// useSuffix names the small file locks/<key>.use. Its modification time is
// when the result was used last; whoever works with the result holds a shared
// lock on it, and whoever removes the result an exclusive one.
const useSuffix = ".use"

func (s *Store) usePath(name string) string {
	return filepath.Join(s.root, "locks", name+useSuffix)
}

// Hold keeps a key's result from being pruned until Release, or until this
// process ends, and records that it is used now. With the result, its parents
// are kept. A removal that is under way is waited for, which takes a moment;
// the caller looks the result up afterwards, since it may be gone by then.
// Holding a key twice is fine.
func (s *Store) Hold(ctx context.Context, key string) error {
	s.mu.Lock()
	_, have := s.held[key]
	s.mu.Unlock()
	if !have {
		f, err := s.share(ctx, s.usePath(key))
		if err != nil {
			return err
		}
		s.mu.Lock()
		if old := s.held[key]; old != nil {
			f.Close() // another goroutine was quicker; its lock counts
		} else {
			s.held[key] = f
		}
		s.mu.Unlock()
	}
	s.Touch(key)
	return nil
}

// share takes a shared lock on a file, which it makes.
func (s *Store) share(ctx context.Context, path string) (*os.File, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if f, err := tryShare(path); f != nil || err != nil {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// tryShare is share without a wait; it returns nil where somebody has an
// exclusive lock.
func tryShare(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	ok, err := tryLockShared(f)
	if err == nil && ok {
		return f, nil
	}
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("taking the lock %s: %w", path, err)
	}
	return nil, nil
}

// Release lets go of all that was held.
func (s *Store) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, f := range s.held {
		f.Close()
		delete(s.held, key)
	}
}

// Touch records that a key's result is used now. It is a best effort: a
// result whose use could not be recorded is only pruned the earlier.
func (s *Store) Touch(key string) {
	s.touchAt(key, time.Now())
}

func (s *Store) touchAt(key string, now time.Time) {
	p := s.usePath(key)
	if os.Chtimes(p, now, now) == nil {
		return
	}
	if f, err := os.OpenFile(p, os.O_RDWR|os.O_CREATE, 0o644); err == nil {
		f.Close()
		os.Chtimes(p, now, now) //nolint:errcheck // see above
	}
}

// used returns when a result was used last: when it was made, where no use
// has been recorded since.
func (s *Store) used(key string, made time.Time) time.Time {
	if fi, err := os.Stat(s.usePath(key)); err == nil && fi.ModTime().After(made) {
		return fi.ModTime()
	}
	return made
}

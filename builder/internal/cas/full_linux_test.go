package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/builder/fault"
)

// room mounts a file system with room for so many pages and files, and a store
// made before that.
func room(t *testing.T, pages, files int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("nr_blocks=%d,nr_inodes=%d", pages, files))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip("mounting a tmpfs of limited size is not permitted here; it takes root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestNoSpaceAtEveryWrite gives an operation room for one page more each time,
// then for one file more, until it succeeds. As long as it fails it leaves
// nothing, not even under a temporary name, and says why; with room it then
// succeeds in the same store.
func TestNoSpaceAtEveryWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("0123456789abcdef"), 2<<10), 0o644); err != nil { // 8 pages
		t.Fatal(err)
	}
	digest, _, err := DigestFile(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.Repeat("ab", 32)
	for _, op := range []struct {
		name  string
		do    func(s *Store) error
		check func(s *Store) error // that it has been done
	}{
		{"a result", func(s *Store) error { return commitFile(t.Context(), s, key, file) }, func(s *Store) error {
			_, ok, err := s.Lookup(key)
			if err == nil && !ok {
				err = errors.New("no result")
			}
			v, verr := s.Verify(t.Context(), nil, nil)
			if len(v.Damage) > 0 {
				err = fmt.Errorf("damaged: %v", v.Damage)
			}
			return errors.Join(err, verr)
		}},
		{"a blob", func(s *Store) error { _, err := s.AddBlob(t.Context(), file, nil); return err },
			func(s *Store) error { return s.VerifyBlob(t.Context(), digest) }},
		{"a run", func(s *Store) error { _, _, err := s.NewRun(time.Now()); return err }, func(*Store) error { return nil }},
	} {
		t.Run(op.name, func(t *testing.T) {
			const plenty = 1000
			for _, of := range []struct {
				what string
				room func(n int) string
			}{
				{"pages", func(n int) string { return room(t, n, plenty) }},
				{"files", func(n int) string { return room(t, plenty, n) }},
			} {
				failed := 0
				for n := 1; ; n++ {
					if n == 100 {
						t.Fatalf("%d %s are not enough", n, of.what)
					}
					dir := of.room(n)
					s, err := Open(dir)
					if err != nil {
						if fault.ClassOf(err) != fault.Host {
							t.Errorf("opening a store with %d %s: %v", n, of.what, err)
						}
						continue
					}
					before := names(t, dir)
					if err = op.do(s); err == nil {
						if err := op.check(s); err != nil {
							t.Errorf("with %d %s: %v", n, of.what, err)
						}
						break
					}
					failed++
					if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), dir) {
						t.Errorf("with %d %s: %v", n, of.what, err)
					}
					for p := range names(t, dir) {
						if !before[p] && !strings.HasPrefix(p, "locks") && p != "blobs" && p != "blobs/sha256" {
							t.Errorf("with %d %s it left %s", n, of.what, p)
						}
					}
					if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "nr_blocks=1000,nr_inodes=1000"); err != nil {
						t.Fatal(err)
					}
					if err := errors.Join(op.do(s), op.check(s)); err != nil {
						t.Errorf("with room again: %v", err)
					}
				}
				t.Logf("%d times too few %s", failed, of.what)
				if failed == 0 && !(op.name == "a run" && of.what == "pages") { // it is of files alone
					t.Errorf("never too few %s: this test no longer tests", of.what)
				}
			}
		})
	}
}

// commitFile makes a result of a file, as the engine does.
func commitFile(ctx context.Context, s *Store, key, file string) (err error) {
	lock, err := s.Lock(ctx, key, nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	d, err := s.Begin(key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Discard()) }()
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out := filepath.Join(d.Dir, "out")
	if err := os.WriteFile(out, data, 0o444); err != nil {
		return err
	}
	digest, size, err := DigestFile(ctx, out)
	if err != nil {
		return err
	}
	return d.Commit([]byte("{}"), Result{Stage: "s", Run: "r", Outputs: map[string]OutputResult{"out": {Kind: "file", Digest: digest, Size: size}}})
}

// names lists all files below dir, as seen from it.
func names(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		out[rel] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

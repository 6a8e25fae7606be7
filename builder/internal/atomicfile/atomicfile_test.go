package atomicfile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// content returns the file's content, failing the test where there is none,
// and checks that nothing but the wanted names lies in the folder.
func content(t *testing.T, path string, names ...string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %q, want %q", got, names)
	}
	return string(data)
}

func TestWriteReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, data := range []string{"one, and longer", "two", ""} {
		if err := Write(t.Context(), path, []byte(data), 0o640); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path, "f"); got != data {
			t.Errorf("got %q, want %q", got, data)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestFailureKeepsTheOldFile(t *testing.T) {
	boom := errors.New("boom")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		ctx  context.Context
		r    io.Reader
		size int64
		want error
	}{
		"too short":     {t.Context(), strings.NewReader("ab"), 3, nil},
		"too long":      {t.Context(), strings.NewReader("abcd"), 3, nil},
		"broken reader": {t.Context(), io.MultiReader(strings.NewReader("a"), &failing{boom}), Unknown, boom},
		"cancelled":     {cancelled, strings.NewReader("abc"), 3, context.Canceled},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Copy(c.ctx, path, c.r, c.size, 0o600)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one that names the file and wraps %v", err, c.want)
			}
			if got := content(t, path, "f"); got != "old" {
				t.Errorf("the old file is now %q", got)
			}
		})
	}
}

func TestNoFolder(t *testing.T) {
	if err := Write(t.Context(), filepath.Join(t.TempDir(), "no", "f"), nil, 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestRename(t *testing.T) {
	dir := t.TempDir()
	path, tmp := filepath.Join(dir, "f"), filepath.Join(dir, "tmp")
	for _, data := range []string{"old", "new"} {
		if err := os.WriteFile(tmp, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Rename(t.Context(), tmp, path); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path, "f"); got != data {
			t.Errorf("got %q, want %q", got, data)
		}
	}
}

func TestDir(t *testing.T) {
	root := t.TempDir()
	final := filepath.Join(root, "final")
	build := func(name, data string) string {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "sub", "f"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if err := os.Mkdir(final, 0o755); err != nil { // an empty folder does not count
		t.Fatal(err)
	}
	if err := Dir(t.Context(), build("a", "first"), final); err != nil {
		t.Fatal(err)
	}
	second := build("b", "second")
	if err := Dir(t.Context(), second, final); !errors.Is(err, ErrExists) {
		t.Errorf("second Dir: %v, want ErrExists", err)
	}
	if got := content(t, filepath.Join(final, "sub", "f"), "f"); got != "first" {
		t.Errorf("the first folder now holds %q", got)
	}
	if got := content(t, filepath.Join(second, "sub", "f"), "f"); got != "second" {
		t.Errorf("the refused folder now holds %q", got)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

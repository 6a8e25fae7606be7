package faulttest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wbox-dev/wbox/builder/box"
)

// CopyTree copies a folder, which becomes the folder to.
func CopyTree(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-r", "-T", "--reflink=auto", "--sparse=always", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copying %s: %w: %s", from, err, bytes.TrimSpace(out))
	}
	return nil
}

// Restore makes the output folder a copy of another one, whose catalog was
// written in the folder was: a catalog names its own place.
func (w *Wbox) Restore(ctx context.Context, from, was string) error {
	if err := os.RemoveAll(w.Out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(w.Out), 0o755); err != nil {
		return err
	}
	if err := CopyTree(ctx, from, w.Out); err != nil {
		return err
	}
	catalog := filepath.Join(w.Out, box.CatalogFile)
	data, err := os.ReadFile(catalog)
	if err != nil {
		return err
	}
	return os.WriteFile(catalog, bytes.ReplaceAll(data, urlPath(was), urlPath(w.Out)), 0o644)
}

func urlPath(dir string) []byte { return bytes.ReplaceAll([]byte(dir), []byte(" "), []byte("%20")) }

// Made says for each result of the store, by key, in which run it was made.
func (w *Wbox) Made(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range w.Results(t) {
		out[r.Key] = r.Run
	}
	return out
}

// CheckKept checks that what was made before was not made again.
func (w *Wbox) CheckKept(t testing.TB, before map[string]string) {
	t.Helper()
	now := w.Made(t)
	for key, run := range before {
		if now[key] != run {
			t.Errorf("the result %.12s of run %s was made again, by %q", key, run, now[key])
		}
	}
}

package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWhatKilledBuildsOfImagesLeftGoes(t *testing.T) {
	store := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"images-old": 25 * time.Hour, "images-new": time.Hour, "blobs": 100 * time.Hour} {
		dir := filepath.Join(store, name)
		if err := os.MkdirAll(filepath.Join(dir, "below"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	sweepImages(store, now)
	for name, want := range map[string]bool{"images-old": false, "images-new": true, "blobs": true} {
		if _, err := os.Stat(filepath.Join(store, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

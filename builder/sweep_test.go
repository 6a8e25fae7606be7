package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWhatKilledRunsLeaveAmongTemporaryFiles(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	for name, age := range map[string]time.Duration{
		"wbox-trial-1": 25 * time.Hour, "wbox-tree-2": 48 * time.Hour, // left
		"wbox-trial-3": time.Hour, "wbox-other": 99 * time.Hour, "somebody-else": 99 * time.Hour,
	} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(path, "file"), "x")
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, "wbox-trial-file"), "x")
	sweepTemp(dir, now)
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "somebody-else wbox-other wbox-trial-3 wbox-trial-file" {
		t.Errorf("left: %s", got)
	}
	sweepTemp(filepath.Join(dir, "no-such"), now)
}

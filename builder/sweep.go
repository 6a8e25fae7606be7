package builder

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tempPrefixes begin the names of folders that wbox makes among the system's
// temporary files. What runs removes its own; a killed run can't.
var tempPrefixes = []string{"wbox-trial-", "wbox-kube-", "wbox-tree-", "wbox-view-", "wbox-bundle-"}

// tempAge is how old such a folder must be before another run takes it for a
// dead one's: nothing of ours needs one for so long.
const tempAge = 24 * time.Hour

// sweepTemp removes the folders that killed runs have left in dir. They may be
// others' to remove, so it is a best effort.
func sweepTemp(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		for _, p := range tempPrefixes {
			if !e.IsDir() || !strings.HasPrefix(e.Name(), p) {
				continue
			}
			if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > tempAge {
				os.RemoveAll(filepath.Join(dir, e.Name())) //nolint:errcheck // said above
			}
		}
	}
}

package gosource

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/cas"
)

// WaitForLock waits for a lock file; waiting is called once if another holds it.
func WaitForLock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for first := true; ; first = false {
		l, err := cas.TryLockFile(path)
		if err != nil {
			return nil, err
		}
		if l != nil {
			return l.Unlock, nil
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", filepath.Base(path), ctx.Err())
		case <-tick.C:
		}
	}
}

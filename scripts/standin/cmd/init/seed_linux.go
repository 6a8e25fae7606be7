package main

import (
	"context"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/guestos"
	"github.com/wbox-dev/wbox/scripts/standin/internal/install"
	"github.com/wbox-dev/wbox/scripts/standin/internal/volume"
)

// seedWait is how long after the start a CD may take to appear.
const seedWait = 15 * time.Second

// seedFinder returns a function that mounts the seed CD at its first use and
// remembers where. A machine without one is looked at again the next time, but
// waited for only in the first seconds.
func seedFinder() func(context.Context) (string, error) {
	const dir = "/mnt/seed"
	var mu sync.Mutex
	mounted, begun := false, time.Now()
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if mounted {
			return dir, nil
		}
		device, err := guestos.WaitVolume(ctx, seedWait-time.Since(begun), "a volume "+install.SeedLabel, func(v volume.Info) bool {
			return v.Kind == volume.ISO9660 && v.Label == install.SeedLabel
		})
		if err != nil {
			return "", err
		}
		if err := guestos.MountCD(device, dir); err != nil {
			return "", err
		}
		mounted = true
		return dir, nil
	}
}

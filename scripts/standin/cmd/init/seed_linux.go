package main

import (
	"context"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/guestos"
	"github.com/wbox-dev/wbox/scripts/standin/internal/install"
	"github.com/wbox-dev/wbox/scripts/standin/internal/volume"
)

// seedFinder returns a function that mounts the seed CD at its first use and
// remembers where. A machine without one is asked again the next time.
func seedFinder() func(context.Context) (string, error) {
	const dir = "/mnt/seed"
	var mu sync.Mutex
	mounted := false
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if mounted {
			return dir, nil
		}
		device, err := guestos.WaitVolume(ctx, 5*time.Second, "a volume "+install.SeedLabel, func(v volume.Info) bool {
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

// Package machinetest is a machine for tests: a partition table in memory and a
// folder for the payload partition.
//
// It must not be imported but by tests.
package machinetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
)

// Fake is a machine. Its fields are set before it is used.
type Fake struct {
	Booted  time.Time
	Table   []machine.Partition
	Content map[int]string // a partition's number -> the folder that plays its content

	mu       sync.Mutex
	restarts []Restart
}

// Restart is one call of the method of that name.
type Restart struct {
	Delay time.Duration
	Off   bool
}

// BootTime returns Booted.
func (f *Fake) BootTime() (time.Time, error) { return f.Booted, nil }

// Restart notes the call.
func (f *Fake) Restart(delay time.Duration, off bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restarts = append(f.restarts, Restart{delay, off})
}

// AbortRestart takes the last call back.
func (f *Fake) AbortRestart() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.restarts) == 0 {
		return false
	}
	f.restarts = f.restarts[:len(f.restarts)-1]
	return true
}

// Restarts returns the calls that stand.
func (f *Fake) Restarts() []Restart {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Restart(nil), f.restarts...)
}

// Partitions returns a copy of Table.
func (f *Fake) Partitions(context.Context) ([]machine.Partition, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]machine.Partition(nil), f.Table...), nil
}

// SetAttributes changes Table.
func (f *Fake) SetAttributes(_ context.Context, number int, attributes machine.Attributes) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.Table {
		if f.Table[i].Number == number {
			f.Table[i].Attributes = attributes
			return nil
		}
	}
	return fmt.Errorf("there is no partition %d", number)
}

// MountPartition puts a link to the content in the folder's place.
func (f *Fake) MountPartition(_ context.Context, number int, path string) error {
	content, ok := f.Content[number]
	if !ok {
		return fmt.Errorf("there is no partition %d", number)
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(content, path)
}

// Unmount puts the folder back.
func (f *Fake) Unmount(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o755)
}

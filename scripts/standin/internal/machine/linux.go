//go:build linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/scripts/standin/internal/guestos"
	"github.com/wbox-dev/wbox/scripts/standin/internal/volume"
)

const sector = 512

// Linux is the machine that this program runs on as its first process.
type Linux struct {
	disk guestos.Device
	end  chan guestos.Power

	mu    sync.Mutex // guards the timer and the partition table
	timer *time.Timer
}

// New returns the machine whose system disk is disk.
func New(disk guestos.Device) *Linux {
	return &Linux{disk: disk, end: make(chan guestos.Power, 1)}
}

// End tells when the machine is to be left, and how.
func (m *Linux) End() <-chan guestos.Power { return m.end }

// BootTime is the kernel's.
func (m *Linux) BootTime() (time.Time, error) { return guestos.BootTime() }

// grace is what passes at least between the request to restart and its start:
// Windows, too, still answers whoever asked.
const grace = 1500 * time.Millisecond

// Restart plans the end of this boot, in place of one that is planned already.
func (m *Linux) Restart(delay time.Duration, off bool) {
	how := guestos.Reboot
	if off {
		how = guestos.Off
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
	m.timer = time.AfterFunc(max(delay, grace), func() {
		select {
		case m.end <- how:
		default: // it is ending already
		}
	})
}

// AbortRestart takes back a planned end.
func (m *Linux) AbortRestart() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	stopped := m.timer != nil && m.timer.Stop()
	m.timer = nil
	return stopped
}

// Partitions reads the table and looks at what each partition holds.
func (m *Linux) Partitions(_ context.Context) ([]Partition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	disk, err := os.Open(m.disk.Path())
	if err != nil {
		return nil, fmt.Errorf("opening the disk: %w", err)
	}
	defer disk.Close()
	table, err := gpt.Read(file.New(disk, true), sector, sector)
	if err != nil {
		return nil, fmt.Errorf("reading the partition table: %w", err)
	}
	var found []Partition
	for i, p := range table.Partitions {
		if p.Type == gpt.Unused {
			continue
		}
		part := Partition{Number: i + 1, Type: strings.ToUpper(string(p.Type)), GUID: strings.ToUpper(p.GUID), Name: p.Name,
			Attributes: Attributes(p.Attributes), Offset: int64(p.Start) * sector, Size: int64(p.End-p.Start+1) * sector}
		if p.Index > 0 {
			part.Number = p.Index
		}
		probe := &offsetReader{disk, part.Offset}
		switch info := volume.Probe(probe); info.Kind {
		case volume.FAT32:
			part.FileSystem, part.Label = "FAT32", info.Label
		case volume.Ext4:
			part.FileSystem, part.Label = "NTFS", info.Label
		}
		found = append(found, part)
	}
	return found, nil
}

// offsetReader reads from a place on the disk on.
type offsetReader struct {
	disk *os.File
	at   int64
}

func (r *offsetReader) ReadAt(b []byte, off int64) (int, error) { return r.disk.ReadAt(b, r.at+off) }

// SetAttributes writes both tables on the disk; the kernel, which knows nothing
// of attributes, need not be told.
func (m *Linux) SetAttributes(_ context.Context, number int, attributes Attributes) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	disk, err := os.OpenFile(m.disk.Path(), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening the disk: %w", err)
	}
	table, err := gpt.Read(file.New(disk, true), sector, sector)
	if err != nil {
		return errors.Join(fmt.Errorf("reading the partition table: %w", err), disk.Close())
	}
	for i, p := range table.Partitions {
		if p.Type != gpt.Unused && (p.Index == number || (p.Index == 0 && i+1 == number)) {
			p.Attributes = uint64(attributes)
			if err := table.Write(disk, m.disk.Size); err != nil {
				return errors.Join(fmt.Errorf("writing the partition table: %w", err), disk.Close())
			}
			return errors.Join(disk.Sync(), disk.Close())
		}
	}
	return errors.Join(fmt.Errorf("there is no partition %d", number), disk.Close())
}

// MountPartition mounts a partition's FAT32.
func (m *Linux) MountPartition(ctx context.Context, number int, path string) error {
	partitions, err := m.Partitions(ctx)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		if p.Number != number {
			continue
		}
		if p.FileSystem != "FAT32" {
			return fmt.Errorf("partition %d holds %q, not FAT32", number, p.FileSystem)
		}
		device, err := guestos.WaitPartition(ctx, m.disk, number)
		if err != nil {
			return err
		}
		flags := uintptr(unix.MS_NOATIME)
		if p.Attributes&ReadOnly != 0 {
			flags |= unix.MS_RDONLY
		}
		return guestos.Mount(device.Path(), path, "vfat", flags, "iocharset=ascii,fmask=0022,dmask=0022")
	}
	return fmt.Errorf("there is no partition %d", number)
}

// Unmount unmounts a partition.
func (m *Linux) Unmount(path string) error { return guestos.Unmount(path) }

package guestos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/scripts/standin/internal/volume"
)

// Device is a disk, a CD drive or a partition.
type Device struct {
	Name   string // such as "sda3"
	Parent string // the disk of a partition, empty for a whole device
	Number int    // a partition's number
	Size   int64  // in bytes
}

// Path returns the device file.
func (d Device) Path() string { return "/dev/" + d.Name }

// Devices lists what the kernel knows now, by name.
func Devices() ([]Device, error) {
	paths, err := filepath.Glob("/sys/class/block/*")
	if err != nil {
		return nil, fmt.Errorf("listing devices: %w", err)
	}
	sort.Strings(paths)
	var devices []Device
	for _, path := range paths {
		d := Device{Name: filepath.Base(path)}
		if !strings.HasPrefix(d.Name, "sd") && !strings.HasPrefix(d.Name, "sr") {
			continue
		}
		d.Size = int64(number(path+"/size")) * 512
		if d.Number = number(path + "/partition"); d.Number > 0 {
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				return nil, fmt.Errorf("listing devices: %w", err)
			}
			d.Parent = filepath.Base(filepath.Dir(real))
		}
		devices = append(devices, d)
	}
	return devices, nil
}

func number(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return n
}

// FindVolume returns the first device whose file system fits.
func FindVolume(fits func(volume.Info) bool) (Device, bool) {
	devices, err := Devices()
	if err != nil {
		return Device{}, false
	}
	for _, d := range devices {
		file, err := os.Open(d.Path())
		if err != nil {
			continue
		}
		info := volume.Probe(file)
		file.Close()
		if fits(info) {
			return d, true
		}
	}
	return Device{}, false
}

// WaitVolume waits until a device's file system fits, for at most timeout.
func WaitVolume(ctx context.Context, timeout time.Duration, what string, fits func(volume.Info) bool) (Device, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no device holds %s", what))
	defer cancel()
	var found Device
	err := poll(ctx, 100*time.Millisecond, func() bool {
		var ok bool
		found, ok = FindVolume(fits)
		return ok
	})
	return found, err
}

// WaitDisk waits for the only hard disk and returns it; disks are counted from 0
// as Setup counts them, and the stand-in knows one.
func WaitDisk(ctx context.Context, timeout time.Duration) (Device, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("there is no disk"))
	defer cancel()
	var disks []Device
	err := poll(ctx, 100*time.Millisecond, func() bool {
		devices, err := Devices()
		disks = nil
		for _, d := range devices {
			if err == nil && d.Parent == "" && strings.HasPrefix(d.Name, "sd") {
				disks = append(disks, d)
			}
		}
		return len(disks) > 0
	})
	if err != nil {
		return Device{}, err
	}
	if len(disks) > 1 {
		return Device{}, fmt.Errorf("there are %d disks; which is disk 0 can't be told", len(disks))
	}
	return disks[0], nil
}

// RereadPartitions makes the kernel read a disk's partition table again.
func RereadPartitions(disk *os.File) error {
	if _, err := unix.IoctlRetInt(int(disk.Fd()), unix.BLKRRPART); err != nil {
		return fmt.Errorf("reading the new partition table: %w", err)
	}
	return nil
}

// WaitPartition waits for a partition of a disk.
func WaitPartition(ctx context.Context, disk Device, number int) (Device, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, fmt.Errorf("partition %d of the disk does not appear", number))
	defer cancel()
	var found Device
	err := poll(ctx, 50*time.Millisecond, func() bool {
		devices, err := Devices()
		for _, d := range devices {
			if err == nil && d.Parent == disk.Name && d.Number == number {
				found = d
			}
		}
		if found.Name == "" {
			return false
		}
		_, err = os.Stat(found.Path())
		return err == nil
	})
	return found, err
}

// MountCD mounts a CD read-only: its UDF side where it has one, as Windows does.
func MountCD(d Device, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := Mount(d.Path(), target, "udf", unix.MS_RDONLY, ""); err == nil {
		return nil
	}
	return Mount(d.Path(), target, "iso9660", unix.MS_RDONLY, "")
}

// Package machine is what the played Windows can do to the real virtual machine:
// restart it, see and change its partition table, and mount the payload
// partition. The interface has a fake in its users' tests and one
// implementation, on Linux.
//
// It must not import the agent or anything that answers commands.
package machine

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Attribute bits of a basic data partition; source: Microsoft's reference of
// PARTITION_INFORMATION_GPT (winioctl.h).
const (
	ReadOnly      Attributes = 1 << 60
	Hidden        Attributes = 1 << 62
	NoDriveLetter Attributes = 1 << 63
)

// Attributes are the attribute bits of a partition. In JSON they are text, such
// as "0xd000000000000000": readers take big numbers for inexact ones.
type Attributes uint64

// MarshalText implements encoding.TextMarshaler.
func (a Attributes) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#016x", uint64(a)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Attributes) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		// The highest bit is the one for "no drive letter": a signed number of
		// 64 bits, as PowerShell may hold it, is negative then.
		var signed int64
		if signed, err = strconv.ParseInt(string(text), 0, 64); err == nil {
			v = uint64(signed)
		}
	}
	*a = Attributes(v)
	return err
}

// Partition is one entry of the partition table.
type Partition struct {
	Number     int        `json:"number"`
	Type       string     `json:"type"` // a GUID in upper case
	GUID       string     `json:"guid"` // in upper case
	Name       string     `json:"name"`
	Attributes Attributes `json:"attributes"`
	Offset     int64      `json:"offset"`     // in bytes
	Size       int64      `json:"size"`       // in bytes
	FileSystem string     `json:"fileSystem"` // FAT32, NTFS or empty, as found on the disk
	Label      string     `json:"label"`
}

// Machine is the virtual machine. Implementations are safe for concurrent use.
type Machine interface {
	// BootTime is when the kernel started.
	BootTime() (time.Time, error)
	// Restart resets (or, with off, turns off) the machine after delay, unless
	// AbortRestart comes first. It returns at once.
	Restart(delay time.Duration, off bool)
	// AbortRestart says whether there was a restart to abort.
	AbortRestart() bool
	// Partitions reads the partition table from the disk.
	Partitions(ctx context.Context) ([]Partition, error)
	// SetAttributes writes a partition's attributes into the table on the disk.
	SetAttributes(ctx context.Context, number int, attributes Attributes) error
	// MountPartition mounts a FAT32 partition below a folder; it is read-only
	// where its attributes say so.
	MountPartition(ctx context.Context, number int, path string) error
	// Unmount unmounts what MountPartition mounted.
	Unmount(path string) error
}

// Faulty is implemented by machines that can be made to misbehave.
type Faulty interface {
	// SetClock sets the clock forwards or backwards.
	SetClock(by time.Duration) error
	// Sleep freezes everything until somebody outside wakes the machine.
	Sleep() error
	// Fill takes all the room of a file system into one file.
	Fill(path string) error
}

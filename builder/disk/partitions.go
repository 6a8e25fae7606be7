package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// PayloadLabel is the volume label of the payload partition.
const PayloadLabel = "WBOX"

// Partitions returns the partitions of a qcow2 image in the order of its GUID
// partition table, both copies of which must be sound. scratch is an existing
// folder for small temporary files.
func (t *Tool) Partitions(ctx context.Context, disk, scratch string) ([]Partition, error) {
	g, err := t.gpt(ctx, disk, scratch)
	if err != nil {
		return nil, err
	}
	return g.partitions, nil
}

func (t *Tool) gpt(ctx context.Context, disk, scratch string) (*gpt, error) {
	disk, err := filepath.Abs(disk)
	if err != nil {
		return nil, err
	}
	info, err := t.Info(ctx, disk)
	if err != nil {
		return nil, err
	}
	return readGPT(func(offset int64, n int) ([]byte, error) {
		return t.readBytes(ctx, window{disk, offset, int64(n)}, scratch)
	}, info.VirtualSize)
}

// findLabel returns the one basic data partition of the disk that holds a
// FAT32 file system with the label. Partition names don't help: Windows Setup
// calls all of them "Basic data partition".
func (t *Tool) findLabel(ctx context.Context, g *gpt, disk, label, scratch string) (Partition, error) {
	var found []Partition
	for _, p := range g.partitions {
		if p.Type != basicData {
			continue
		}
		got, err := fatLabel(func(offset int64, n int) ([]byte, error) {
			if offset < 0 || offset+int64(n) > p.Size() {
				return nil, errNotFAT
			}
			return t.readBytes(ctx, window{disk, p.Offset() + offset, int64(n)}, scratch)
		})
		if errors.Is(err, errNotFAT) {
			continue
		}
		if err != nil {
			return Partition{}, fmt.Errorf("looking at partition %d: %w", p.Number, err)
		}
		if got == label {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return Partition{}, fmt.Errorf("%d partitions of the disk are labelled %s, want 1", len(found), label)
	}
	return found[0], nil
}

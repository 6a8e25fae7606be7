package install

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/partition/gpt"
)

const sector = 512

// typeGUID returns the partition type of a planned partition.
func (p Planned) typeGUID() gpt.Type {
	switch {
	case p.TypeID != "":
		return gpt.Type(strings.Trim(strings.ToUpper(p.TypeID), "{}"))
	case p.Type == "EFI":
		return gpt.EFISystemPartition
	case p.Type == "MSR":
		return gpt.MicrosoftReserved
	}
	return gpt.MicrosoftBasicData
}

// gptName returns the partition's name as Windows gives it.
func (p Planned) gptName() string {
	switch p.Type {
	case "EFI":
		return "EFI system partition"
	case "MSR":
		return "Microsoft reserved partition"
	}
	return "Basic data partition"
}

// WriteTable writes the partition table for a plan to a disk of that many bytes
// and returns each partition's GUID, by number from 1.
func WriteTable(disk backend.WritableFile, size int64, plan []Planned) (map[int]string, error) {
	table := &gpt.Table{LogicalSectorSize: sector, PhysicalSectorSize: sector, ProtectiveMBR: true, GUID: newGUID()}
	guids := map[int]string{}
	for _, p := range plan {
		guids[p.Number] = newGUID()
		table.Partitions = append(table.Partitions, &gpt.Partition{
			Index: p.Number, Start: uint64(p.Start / sector), End: uint64((p.Start+p.Size)/sector - 1), Size: uint64(p.Size),
			Type: p.typeGUID(), Name: p.gptName(), GUID: guids[p.Number],
		})
	}
	if err := table.Write(disk, size); err != nil {
		return nil, fmt.Errorf("writing the partition table: %w", err)
	}
	return guids, nil
}

// newGUID draws a random (version 4) GUID.
func newGUID() string {
	var b [16]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails, says its documentation
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

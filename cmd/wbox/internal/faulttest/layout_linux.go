package faulttest

import (
	"context"
	"os"

	diskfile "github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
	diskgpt "github.com/diskfs/go-diskfs/partition/gpt"
)

const (
	mib        = int64(1) << 20
	sectorSize = 512
	// diskGiB is the size of the machines' disks: the smallest that wbox makes.
	diskGiB = 32
)

// writeLayout makes the qcow2 image path with the partitions that the answer
// file asks for, the payload's smaller than in earnest.
func writeLayout(ctx context.Context, path string) error {
	raw := path + ".raw"
	defer os.Remove(raw)
	const size = int64(diskGiB) << 30
	storage, err := diskfile.CreateFromPath(raw, size)
	if err != nil {
		return err
	}
	defer storage.Close()
	sectors := func(m int64) uint64 { return uint64(m * mib / sectorSize) }
	part := func(i int, typ diskgpt.Type, name string, from, to int64) *diskgpt.Partition {
		return &diskgpt.Partition{Index: i, Type: typ, Name: name, Start: sectors(from), End: sectors(to) - 1}
	}
	table := &diskgpt.Table{LogicalSectorSize: sectorSize, PhysicalSectorSize: sectorSize, ProtectiveMBR: true,
		GUID: "5b193300-fc78-40cd-8002-e86c45580b47",
		Partitions: []*diskgpt.Partition{
			part(1, diskgpt.EFISystemPartition, "EFI system partition", 1, 37),
			part(2, diskgpt.MicrosoftReserved, "Microsoft reserved partition", 37, 53),
			part(3, diskgpt.MicrosoftBasicData, "Basic data partition", 53, 125),
			part(4, diskgpt.MicrosoftBasicData, "Basic data partition", 125, diskGiB<<10-1),
		}}
	w, err := storage.Writable()
	if err != nil {
		return err
	}
	if err := table.Write(w, size); err != nil {
		return err
	}
	if _, err := fat32.Create(storage, 72*mib, 53*mib, sectorSize, "WBOX", true); err != nil {
		return err
	}
	fs, err := fat32.Read(storage, 72*mib, 53*mib, sectorSize)
	if err != nil {
		return err
	}
	if err := fs.SetLabel("WBOX"); err != nil {
		return err
	}
	return program(ctx, "qemu-img", "convert", "-q", "-f", "raw", "-O", "qcow2", raw, path)
}

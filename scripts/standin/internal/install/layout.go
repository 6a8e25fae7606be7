// Package install is the stand-in's Windows Setup: it lays out the disk as the
// answer file says, formats the volumes, unpacks the system, and leaves behind
// what the first boot from the disk has to do.
//
// Planning is pure and tested without a machine; what touches devices goes
// through the Disk it is given. The package must not import the agent, which
// runs from the installed disk.
package install

import (
	"fmt"
	"strings"

	"github.com/wbox-dev/wbox/scripts/standin/internal/answer"
)

// MiB is what Setup calls an MB.
const MiB = 1 << 20

// backupGPT is what the backup partition table takes at the disk's end, rounded
// up to Setup's alignment of one MiB.
const backupGPT = MiB

// Planned is one partition to make.
type Planned struct {
	Number int    // from 1
	Type   string // EFI, MSR or Primary
	Start  int64  // in bytes, a multiple of MiB
	Size   int64  // in bytes, a multiple of MiB
	Format string // FAT32, NTFS or empty
	Label  string
	Letter string
	TypeID string // a type GUID that replaces the one of Type; empty for none
}

// Plan lays out a disk of that many bytes. Partitions follow each other from
// the first MiB on, as Setup places them.
func Plan(disk answer.Disk, size int64) ([]Planned, error) {
	if !disk.Wipe {
		return nil, fmt.Errorf("disk %d: WillWipeDisk is not true, and the stand-in installs on empty disks only", disk.ID)
	}
	var plan []Planned
	next, end := int64(MiB), size/MiB*MiB-backupGPT
	for i, p := range disk.Create {
		length := int64(p.Size) * MiB
		if p.Extend {
			length = end - next
		}
		if length < MiB || next+length > end {
			return nil, fmt.Errorf("disk %d: no room for partition %d (%s, %d MB): %d MB are left of %d",
				disk.ID, i+1, p.Type, p.Size, max(0, (end-next)/MiB), size/MiB)
		}
		plan = append(plan, Planned{Number: i + 1, Type: p.Type, Start: next, Size: length})
		next += length
	}
	for _, m := range disk.Modify {
		if m.PartitionID < 1 || m.PartitionID > len(plan) {
			return nil, fmt.Errorf("disk %d: there is no partition %d to modify", disk.ID, m.PartitionID)
		}
		p := &plan[m.PartitionID-1]
		if p.Type == "MSR" && (m.Format != "" || m.Label != "" || m.Letter != "") {
			return nil, fmt.Errorf("disk %d: partition %d is reserved and can't be formatted", disk.ID, p.Number)
		}
		p.Format, p.Label, p.Letter, p.TypeID = m.Format, m.Label, m.Letter, m.TypeID
	}
	return plan, check(disk.ID, plan)
}

// check refuses layouts that Setup refuses or that Windows could not boot from.
func check(id int, plan []Planned) error {
	efi, letters := 0, map[string]bool{}
	for _, p := range plan {
		if p.Type == "EFI" {
			efi++
			if p.Format != "FAT32" {
				return fmt.Errorf("disk %d: the EFI system partition %d must be FAT32, not %q", id, p.Number, p.Format)
			}
			if p.Size < 100*MiB {
				return fmt.Errorf("disk %d: the EFI system partition %d needs 100 MB, not %d", id, p.Number, p.Size/MiB)
			}
		}
		if p.Format == "FAT32" && (p.Size > 32<<30 || p.Size < 34*MiB) {
			return fmt.Errorf("disk %d: Windows formats 34 MB to 32 GB as FAT32, partition %d has %d MB", id, p.Number, p.Size/MiB)
		}
		if p.Letter != "" && letters[p.Letter] {
			return fmt.Errorf("disk %d: the letter %s is given twice", id, p.Letter)
		}
		letters[p.Letter] = true
	}
	if efi != 1 {
		return fmt.Errorf("disk %d: a UEFI machine needs one EFI system partition, not %d", id, efi)
	}
	return nil
}

// target returns the partition that Windows goes to.
func target(plan []Planned, image answer.Image) (Planned, error) {
	for _, p := range plan {
		if p.Number != image.PartitionID {
			continue
		}
		if p.Type != "Primary" || p.Format != "NTFS" {
			return p, fmt.Errorf("InstallTo names partition %d, which is %s with the format %q, not Primary with NTFS", p.Number, p.Type, p.Format)
		}
		if p.Size < 20<<30 {
			return p, fmt.Errorf("partition %d has %d MB; Windows Server needs 20480", p.Number, p.Size/MiB)
		}
		if p.Letter != "" && !strings.EqualFold(p.Letter, "C") {
			return p, fmt.Errorf("InstallTo names partition %d, which gets the letter %s", p.Number, p.Letter)
		}
		return p, nil
	}
	return Planned{}, fmt.Errorf("InstallTo names partition %d, which is not made", image.PartitionID)
}

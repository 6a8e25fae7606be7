package install

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/scripts/standin/internal/answer"
	"github.com/wbox-dev/wbox/scripts/standin/internal/guestos"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
	"github.com/wbox-dev/wbox/scripts/standin/internal/volume"
	"github.com/wbox-dev/wbox/scripts/standin/internal/wim"
)

// SeedLabel is the volume label of the seed CD.
const SeedLabel = "WBOXSEED"

// Where things are mounted while Setup runs.
const (
	seedDir   = "/mnt/seed"
	mediumDir = "/mnt/medium"
	targetDir = "/mnt/target"
	efiDir    = "/mnt/efi"
)

// Run installs the stand-in on the machine's disk. mediumLabel is the label of
// the installation medium, template an empty file system that plays NTFS.
func Run(ctx context.Context, console *guestos.Console, mediumLabel string, template []byte) error {
	a, err := readAnswer(ctx)
	if err != nil {
		return err
	}
	console.Printf("setup: the answer file is understood")
	release, image, err := readMedium(ctx, mediumLabel, a)
	if err != nil {
		return err
	}
	console.Printf("setup: installing %q", image.Name)
	plan, disk, guids, err := partition(ctx, a)
	if err != nil {
		return err
	}
	to, err := target(plan, a.Image)
	if err != nil {
		return err
	}
	for _, p := range plan {
		device, err := guestos.WaitPartition(ctx, disk, p.Number)
		if err != nil {
			return err
		}
		if err := format(device, p, p.Number == to.Number, template); err != nil {
			return fmt.Errorf("formatting partition %d: %w", p.Number, err)
		}
	}
	console.Printf("setup: copying files")
	if err := copySystem(ctx, disk, plan, to); err != nil {
		return err
	}
	c := filepath.Join(targetDir, "c")
	if err := state.Create(c, firstState(a, release, image, plan, guids, time.Now())); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(seedDir, "Autounattend.xml"), filepath.Join(c, "Windows", "Panther", "unattend.xml")); err != nil {
		return fmt.Errorf("keeping the answer file: %w", err)
	}
	return errors.Join(guestos.Unmount(efiDir), guestos.Unmount(targetDir))
}

// readAnswer finds the seed by its label and reads the answer file on it.
func readAnswer(ctx context.Context) (*answer.Answer, error) {
	seed, err := guestos.WaitVolume(ctx, 20*time.Second, "a volume "+SeedLabel, func(v volume.Info) bool { return v.Kind == volume.ISO9660 && v.Label == SeedLabel })
	if err != nil {
		return nil, err
	}
	if err := guestos.MountCD(seed, seedDir); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(seedDir, "Autounattend.xml"))
	if err != nil {
		return nil, fmt.Errorf("looking for the answer file: %w", err)
	}
	return answer.Parse(data)
}

// readMedium mounts the medium and chooses the image.
func readMedium(ctx context.Context, label string, a *answer.Answer) (release string, image wim.Image, err error) {
	medium, err := guestos.WaitVolume(ctx, 20*time.Second, "the medium "+label, func(v volume.Info) bool { return v.Kind == volume.ISO9660 && v.Label == label })
	if err != nil {
		return "", image, err
	}
	if err := guestos.MountCD(medium, mediumDir); err != nil {
		return "", image, err
	}
	data, err := os.ReadFile(filepath.Join(mediumDir, "wbox-stand-in.json"))
	if err != nil {
		return "", image, fmt.Errorf("reading the medium: %w", err)
	}
	var marker struct {
		Release string `json:"release"`
	}
	if err := json.Unmarshal(data, &marker); err != nil {
		return "", image, fmt.Errorf("reading the medium: %w", err)
	}
	file, err := os.Open(filepath.Join(mediumDir, "sources", "install.wim"))
	if err != nil {
		return "", image, fmt.Errorf("reading the medium: %w", err)
	}
	defer file.Close()
	images, err := wim.Read(file)
	if err != nil {
		return "", image, fmt.Errorf("reading install.wim: %w", err)
	}
	image, err = wim.Choose(images, a.Image.Name, a.Image.Index)
	return marker.Release, image, err
}

// partition lays out disk 0.
func partition(ctx context.Context, a *answer.Answer) ([]Planned, guestos.Device, map[int]string, error) {
	if len(a.Disks) != 1 || a.Disks[0].ID != 0 || a.Image.DiskID != 0 {
		return nil, guestos.Device{}, nil, errors.New("the stand-in has disk 0 only, and the answer file uses another or several")
	}
	disk, err := guestos.WaitDisk(ctx, 20*time.Second)
	if err != nil {
		return nil, disk, nil, err
	}
	plan, err := Plan(a.Disks[0], disk.Size)
	if err != nil {
		return nil, disk, nil, err
	}
	if _, err := target(plan, a.Image); err != nil {
		return nil, disk, nil, err
	}
	file, err := os.OpenFile(disk.Path(), os.O_RDWR, 0)
	if err != nil {
		return nil, disk, nil, fmt.Errorf("opening the disk: %w", err)
	}
	defer file.Close()
	guids, err := WriteTable(file, disk.Size, plan)
	if err != nil {
		return nil, disk, nil, err
	}
	return plan, disk, guids, guestos.RereadPartitions(file)
}

// format makes the file system of one partition; system says that it is C:.
func format(device guestos.Device, p Planned, system bool, template []byte) error {
	switch p.Format {
	case "FAT32":
		file, err := os.OpenFile(device.Path(), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		err = formatFAT32(file, p.Size, p.Label)
		return errors.Join(err, file.Sync(), file.Close())
	case "NTFS":
		uuid, err := hex.DecodeString(volume.SystemUUID)
		if err != nil {
			return err
		}
		if !system {
			uuid[0] = byte(p.Number) // any other will do
		}
		return guestos.WriteImage(device.Path(), template, uuid)
	}
	return nil
}

// copySystem unpacks the system onto the target and puts the boot file where the
// firmware and Windows look for it.
func copySystem(ctx context.Context, disk guestos.Device, plan []Planned, to Planned) error {
	device, err := guestos.WaitPartition(ctx, disk, to.Number)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(targetDir, 0o755); err != nil {
		return err
	}
	// Inode tables of groups that are never used need not be zeroed.
	if err := guestos.Mount(device.Path(), targetDir, "ext4", unix.MS_NOATIME, "noinit_itable"); err != nil {
		return err
	}
	if err := guestos.GrowFS(targetDir, to.Size, to.Label); err != nil {
		return err
	}
	archive, err := os.Open(filepath.Join(mediumDir, "sources", "standin-root.tar"))
	if err != nil {
		return fmt.Errorf("unpacking the system: %w", err)
	}
	defer archive.Close()
	c := filepath.Join(targetDir, "c")
	if err := os.Mkdir(c, 0o755); err != nil {
		return err
	}
	if err := guestos.FoldCase(c); err != nil {
		return err
	}
	if err := unpack(archive, targetDir); err != nil {
		return err
	}
	for _, p := range plan {
		if p.Type != "EFI" {
			continue
		}
		efi, err := guestos.WaitPartition(ctx, disk, p.Number)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(efiDir, 0o755); err != nil {
			return err
		}
		if err := guestos.Mount(efi.Path(), efiDir, "vfat", 0, "iocharset=ascii"); err != nil {
			return err
		}
		boot := filepath.Join(mediumDir, "sources", "bootmgfw.efi")
		for _, name := range []string{"EFI/Boot/bootx64.efi", "EFI/Microsoft/Boot/bootmgfw.efi"} {
			if err := copyFile(boot, filepath.Join(efiDir, name)); err != nil {
				return fmt.Errorf("writing the boot file: %w", err)
			}
		}
	}
	return nil
}

package media

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// commandLine is the kernel's: messages on the screen and on the first serial
// port, the guest's own through /dev/kmsg without a rate limit, and none of the
// work that software emulation makes dear and a test has no use for. One
// processor of several is used: two emulated ones cost half as much again for
// the same work.
const commandLine = "console=tty0 console=ttyS0,115200 loglevel=4 printk.devkmsg=on panic=-1 " +
	"mitigations=off nokaslr nowatchdog random.trust_bootloader=on maxcpus=1"

// Where the sections of a unified kernel image go; source: systemd-stub(7), and
// the addresses of its example. The kernel must fit below the initial RAM disk.
const (
	cmdlineAddress = "0x30000"
	linuxAddress   = "0x2000000"
	initrdAddress  = "0x3000000"
)

// writeBootFiles makes two unified kernel images: the one that boots the medium
// and the one that Setup puts onto the disk. The first goes into an EFI boot
// image for El Torito and, as on real media, into the tree.
func (in *inputs) writeBootFiles(ctx context.Context, work, tree string) error {
	kern, err := unpackKernel(ctx, in.deb)
	if err != nil {
		return err
	}
	setup := filepath.Join(tree, "efi", "boot", "bootx64.efi")
	if err := in.writeUKI(ctx, kern, work, setup, "setup", setupModules()); err != nil {
		return fmt.Errorf("making the medium's boot file: %w", err)
	}
	disk := filepath.Join(tree, "sources", "bootmgfw.efi")
	if err := in.writeUKI(ctx, kern, work, disk, "disk", diskModules()); err != nil {
		return fmt.Errorf("making the disk's boot file: %w", err)
	}
	return writeEFIImage(ctx, setup, filepath.Join(tree, "efi", "microsoft", "boot", "efisys.bin"))
}

// writeUKI makes one unified kernel image whose guest program starts in mode.
func (in *inputs) writeUKI(ctx context.Context, kern *kernel, work, out, mode string, modules []string) error {
	initrd := filepath.Join(work, mode+".initrd")
	if err := in.writeInitrd(ctx, kern, work, initrd, modules); err != nil {
		return fmt.Errorf("making the initial RAM disk: %w", err)
	}
	cmdline := filepath.Join(work, mode+".cmdline")
	if err := os.WriteFile(cmdline, []byte(commandLine+" wbox.standin="+mode+"\x00"), 0o644); err != nil {
		return err
	}
	_, err := run(ctx, "", "objcopy",
		"--add-section", ".cmdline="+cmdline, "--change-section-vma", ".cmdline="+cmdlineAddress,
		"--add-section", ".linux="+kern.image, "--change-section-vma", ".linux="+linuxAddress,
		"--add-section", ".initrd="+initrd, "--change-section-vma", ".initrd="+initrdAddress,
		"--preserve-dates", efiStub, out)
	return err
}

// writeInitrd makes an initial RAM disk with the guest's program, the modules in
// the order in which they load, and an empty file system for Setup to format
// with.
func (in *inputs) writeInitrd(ctx context.Context, kern *kernel, work, out string, modules []string) error {
	program, err := os.ReadFile(in.init)
	if err != nil {
		return err
	}
	index, err := moduleIndex(kern.modules)
	if err != nil {
		return err
	}
	paths, err := closure(index, modules, moduleDepends)
	if err != nil {
		return err
	}
	files := []cpioFile{
		{name: "dev/", mode: 0o755}, {name: "proc/", mode: 0o755}, {name: "sys/", mode: 0o755},
		{name: "mnt/", mode: 0o755}, {name: "init", mode: 0o755, data: program}, {name: "modules/", mode: 0o755},
	}
	var list bytes.Buffer
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := "modules/" + filepath.Base(path)
		files = append(files, cpioFile{name: name, mode: 0o644, data: data})
		fmt.Fprintln(&list, name)
	}
	files = append(files, cpioFile{name: "modules/order", mode: 0o644, data: list.Bytes()})
	template, err := emptyFileSystem(ctx, work)
	if err != nil {
		return err
	}
	files = append(files, cpioFile{name: "ntfs.img", mode: 0o644, data: template})
	var archive bytes.Buffer
	if err := writeCPIO(&archive, files); err != nil {
		return err
	}
	packed, err := compress(archive.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(out, packed, 0o644)
}

// compress packs with Zstandard's fastest level in one thread, so that the
// result depends on the input alone. The kernel reads frames with windows of up
// to 8 MiB.
func compress(data []byte) ([]byte, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	return enc.EncodeAll(data, nil), nil
}

// writeEFIImage makes the FAT file system that El Torito hands to the firmware,
// with the boot file under the name that UEFI looks for on removable media. It
// stays below 32 MiB: the catalog counts its 512-byte sectors in 16 bits.
func writeEFIImage(ctx context.Context, boot, out string) error {
	info, err := os.Stat(boot)
	if err != nil {
		return err
	}
	const kib = 1024
	size := (info.Size()/kib+1024)/512*512 + 512 // FAT and folders fit into the megabyte on top
	if size >= 32*kib {
		return fmt.Errorf("the boot file has %d bytes; with its file system it must stay below 32 MiB", info.Size())
	}
	if _, err := run(ctx, "", "mkfs.vfat", "-C", "-F", "16", "-i", "57424f58", "-n", "EFISECTOR", "--invariant", out, fmt.Sprint(size)); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"mmd", "-i", out, "::/EFI", "::/EFI/BOOT"},
		{"mcopy", "-i", out, "-m", boot, "::/EFI/BOOT/BOOTX64.EFI"},
	} {
		if err := os.Chtimes(boot, epoch, epoch); err != nil {
			return err
		}
		if _, err := run(ctx, "", argv...); err != nil {
			return err
		}
	}
	return nil
}

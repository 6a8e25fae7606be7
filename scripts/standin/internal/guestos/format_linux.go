package guestos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of the ext4 driver; source: Linux's Documentation/filesystems/ext4
// and fs/ext4/ext4.h. EXT4_IOC_RESIZE_FS takes the new size in blocks,
// FS_IOC_SETFSLABEL a string of FSLABEL_MAX bytes.
const (
	ext4ResizeFS = 0x40086610
	setFSLabel   = 0x41009432
	setFlags     = 0x40086602
	flagCasefold = 0x40000000
	blockSize    = 4096
	labelSize    = 256
	uuidOffset   = 1024 + 104
)

// WriteImage writes an empty file system onto a device, leaving out blocks that
// hold nothing and are empty on the device too.
func WriteImage(device string, image, uuid []byte) error {
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("formatting: %w", err)
	}
	defer file.Close()
	image = bytes.Clone(image)
	copy(image[uuidOffset:], uuid)
	const chunk = 1 << 20
	zero, there := make([]byte, chunk), make([]byte, chunk)
	for at := 0; at < len(image); at += chunk {
		block := image[at:min(at+chunk, len(image))]
		if bytes.Equal(block, zero[:len(block)]) {
			if _, err := io.ReadFull(io.NewSectionReader(file, int64(at), chunk), there[:len(block)]); err == nil && bytes.Equal(there[:len(block)], block) {
				continue
			}
		}
		if _, err := file.WriteAt(block, int64(at)); err != nil {
			return fmt.Errorf("formatting: %w", err)
		}
	}
	return errors.Join(file.Sync(), file.Close())
}

// GrowFS makes a mounted ext4 as large as size and gives it a label.
func GrowFS(mounted string, size int64, label string) error {
	dir, err := os.Open(mounted)
	if err != nil {
		return fmt.Errorf("growing the volume: %w", err)
	}
	defer dir.Close()
	blocks := uint64(size / blockSize)
	if err := ioctl(dir, ext4ResizeFS, unsafe.Pointer(&blocks)); err != nil {
		return fmt.Errorf("growing the volume: %w", err)
	}
	var name [labelSize]byte
	copy(name[:15], label)
	if err := ioctl(dir, setFSLabel, unsafe.Pointer(&name)); err != nil {
		return fmt.Errorf("labelling the volume: %w", err)
	}
	return nil
}

// FoldCase makes names in an empty folder, and below, compare without case.
func FoldCase(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	flags := int32(flagCasefold)
	if err := ioctl(dir, setFlags, unsafe.Pointer(&flags)); err != nil {
		return fmt.Errorf("making %s ignore case: %w", path, err)
	}
	return nil
}

func ioctl(file *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

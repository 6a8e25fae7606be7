package install

import (
	"fmt"
	"io/fs"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
)

// formatFAT32 writes an empty FAT32 onto a device of that many bytes.
func formatFAT32(device fs.File, size int64, label string) error {
	if _, err := fat32.Create(file.New(device, false), size, 0, sector, label, false); err != nil {
		return fmt.Errorf("formatting as FAT32: %w", err)
	}
	return nil
}

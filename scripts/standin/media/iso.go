package media

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
)

// writeISO makes the ISO: all files in UDF, the ISO 9660 side empty but for one
// readme, as on Microsoft's media, and the EFI boot image in the El Torito
// catalog.
func (in *inputs) writeISO(ctx context.Context, work, tree string) error {
	readme := "This disc holds a UDF file system. What plays Windows Server on it is a stand-in of wbox.\r\n"
	if err := os.WriteFile(filepath.Join(tree, "README.TXT"), []byte(readme), 0o644); err != nil {
		return err
	}
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o444)
		if entry.IsDir() {
			mode = 0o755
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
		return os.Chtimes(path, epoch, epoch)
	})
	if err != nil {
		return err
	}
	out := filepath.Join(work, "medium.iso")
	_, err = run(ctx, tree, "genisoimage", "-quiet", "-o", out, "-V", Label, "-sysid", "", "-publisher", "", "-preparer", "", "-appid", "",
		"-udf", "-allow-limited-size", "-iso-level", "3", "-uid", "0", "-gid", "0", "-file-mode", "0444", "-dir-mode", "0555",
		"-hide", "efi", "-hide", "sources", "-hide", "wbox-stand-in.json", "-hide", "boot.catalog",
		"-eltorito-alt-boot", "-e", "efi/microsoft/boot/efisys.bin", "-no-emul-boot", ".")
	if err != nil {
		return err
	}
	return fixISO(out)
}

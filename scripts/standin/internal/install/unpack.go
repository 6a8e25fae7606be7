package install

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// unpack writes a tar of files and folders below root.
func unpack(r io.Reader, root string) error {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking the system: %w", err)
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("unpacking the system: %q leads out of it", header.Name)
		}
		path := filepath.Join(root, filepath.FromSlash(header.Name))
		switch header.Typeflag {
		case tar.TypeDir:
			if err := os.MkdirAll(path, 0o755); err != nil {
				return fmt.Errorf("unpacking the system: %w", err)
			}
		case tar.TypeReg:
			if err := writeFile(path, archive, os.FileMode(header.Mode)&0o777); err != nil {
				return fmt.Errorf("unpacking the system: %w", err)
			}
		default:
			return fmt.Errorf("unpacking the system: %q is neither file nor folder", header.Name)
		}
	}
}

func writeFile(path string, r io.Reader, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, r); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

func copyFile(from, to string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return writeFile(to, file, 0o644)
}

package media

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// emptyFileSystem returns the file system that plays NTFS, empty: ext4 with
// names compared without regard to case, which Setup writes onto a partition
// and grows. Its identifiers are fixed; Setup gives every volume its own.
func emptyFileSystem(ctx context.Context, work string) ([]byte, error) {
	image := filepath.Join(work, "ntfs.img")
	if _, err := run(ctx, "", "mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-i", "1048576", "-J", "size=16",
		"-O", "casefold,^metadata_csum", "-U", "77626f78-6e74-6673-8000-000000000000",
		"-E", "encoding=utf8,lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0,hash_seed=77626f78-6e74-6673-8000-000000000001", image, "128M"); err != nil {
		return nil, err
	}
	return os.ReadFile(image)
}

// rootWriter writes the tar that Setup unpacks onto the volume that plays C:.
type rootWriter struct {
	tar *tar.Writer
}

func (w *rootWriter) add(name string, mode int64, content io.Reader, size int64) error {
	header := &tar.Header{Name: name, Mode: mode, Size: size, ModTime: epoch, Format: tar.FormatGNU, Typeflag: tar.TypeReg}
	if strings.HasSuffix(name, "/") {
		header.Typeflag = tar.TypeDir
	}
	if err := w.tar.WriteHeader(header); err != nil {
		return err
	}
	if content == nil {
		return nil
	}
	_, err := io.Copy(w.tar, content)
	return err
}

func (w *rootWriter) addFile(name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	return w.add(name, mode, file, info.Size())
}

// addTree adds a folder's files below name, in the order of their names.
func (w *rootWriter) addTree(name, root string, skip func(rel string) bool) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case rel != "." && skip != nil && skip(rel):
			return nil
		case entry.IsDir() && rel == ".":
			return w.add(name+"/", 0o755, nil, 0)
		case entry.IsDir():
			return w.add(name+"/"+rel+"/", 0o755, nil, 0)
		}
		return w.addFile(name+"/"+rel, path)
	})
}

// folders are the empty folders of a fresh system: Linux's own, and below c/ the
// ones of Windows that scripts expect.
func folders() []string {
	return []string{
		"dev/", "proc/", "sys/", "run/", "tmp/", "root/", "mnt/", "etc/", "opt/", "wbox/",
		"c/Windows/", "c/Windows/System32/", "c/Windows/System32/config/", "c/Windows/System32/drivers/", "c/Windows/System32/drivers/etc/",
		"c/Windows/System32/WindowsPowerShell/", "c/Windows/System32/WindowsPowerShell/v1.0/",
		"c/Windows/Logs/", "c/Windows/Logs/CBS/", "c/Windows/Panther/", "c/Windows/Temp/", "c/Windows/INF/",
		"c/Program Files/", "c/Program Files (x86)/", "c/ProgramData/", "c/Users/", "c/Users/Public/",
	}
}

// writeRoot writes sources/standin-root.tar: the root file system of the
// installed system, uncompressed because unpacking in an emulator is dear.
func (in *inputs) writeRoot(ctx context.Context, work, tree string) error {
	file, err := os.Create(filepath.Join(tree, "sources", "standin-root.tar"))
	if err != nil {
		return err
	}
	defer file.Close()
	w := &rootWriter{tar: tar.NewWriter(file)}
	for _, dir := range folders() {
		if err := w.add(dir, 0o755, nil, 0); err != nil {
			return err
		}
	}
	const passwd = "root:x:0:0:root:/root:/bin/false\n"
	if err := w.add("etc/passwd", 0o644, strings.NewReader(passwd), int64(len(passwd))); err != nil {
		return err
	}
	if in.ps != "" {
		if err := in.addPowerShell(ctx, w, work); err != nil {
			return fmt.Errorf("adding PowerShell: %w", err)
		}
	}
	if err := w.tar.Close(); err != nil {
		return err
	}
	return file.Close()
}

// addPowerShell adds PowerShell, its libraries and the simulated Windows.
func (in *inputs) addPowerShell(ctx context.Context, w *rootWriter, work string) error {
	for _, dir := range []string{"lib/", "lib/x86_64-linux-gnu/", "lib64/"} {
		if err := w.add(dir, 0o755, nil, 0); err != nil {
			return err
		}
	}
	for _, lib := range in.libraries {
		if err := w.addFile(lib.name, lib.path); err != nil {
			return err
		}
	}
	if err := w.addTree("opt/powershell", in.ps, unwanted); err != nil {
		return err
	}
	if err := in.addContainerd(w); err != nil {
		return err
	}
	windows := filepath.Join(in.source, "windows")
	if err := w.addTree("wbox/windows", windows, func(rel string) bool { return strings.HasPrefix(rel, "tests") || strings.HasSuffix(rel, ".go") }); err != nil {
		return err
	}
	made, err := in.prepareWindows(ctx, work)
	if err != nil {
		return fmt.Errorf("compiling the simulated Windows: %w", err)
	}
	for _, path := range made {
		if err := w.addFile("wbox/windows/"+filepath.Base(path), path); err != nil {
			return err
		}
	}
	return nil
}

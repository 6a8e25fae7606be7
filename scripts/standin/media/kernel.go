package media

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// kernel is an unpacked package of Debian's generic kernel. The cloud kernel
// would be smaller, but it has no AHCI, no e1000e and no USB.
type kernel struct {
	version string // such as "6.1.0-57-amd64"
	image   string // path of the compressed kernel
	modules string // folder of the module files
}

// unpackKernel returns the kernel's files, unpacked beside the package the first
// time. Only what a stand-in may load is kept; nothing is installed.
func unpackKernel(ctx context.Context, deb string) (*kernel, error) {
	dir := strings.TrimSuffix(deb, ".deb")
	if _, err := os.Stat(dir); err != nil {
		work, err := os.MkdirTemp(filepath.Dir(deb), ".unpack-")
		if err != nil {
			return nil, fmt.Errorf("making a folder for the kernel: %w", err)
		}
		defer os.RemoveAll(work)
		const script = `set -eu; dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --wildcards './boot/vmlinuz-*' ` +
			`'*/kernel/crypto/*' '*/kernel/lib/*' '*/kernel/fs/*' '*/kernel/block/*' '*/drivers/acpi/*' '*/drivers/ata/*' '*/drivers/cdrom/*' ` +
			`'*/drivers/input/*' '*/drivers/scsi/*' '*/ethernet/intel/*'`
		if _, err := run(ctx, "", "sh", "-c", script, "sh", deb, work); err != nil {
			return nil, fmt.Errorf("unpacking the kernel: %w", err)
		}
		if err := os.Rename(work, dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("keeping the kernel: %w", err)
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%s holds %d kernels, not one", filepath.Base(deb), len(found))
	}
	version := strings.TrimPrefix(filepath.Base(found[0]), "vmlinuz-")
	return &kernel{version: version, image: found[0], modules: filepath.Join(dir, "lib", "modules", version)}, nil
}

// kernelPackage returns the path of the kernel's .deb in cache: the one that is
// there, else the one that the metapackage linux-image-amd64 asks for.
func kernelPackage(ctx context.Context, cache string) (string, error) {
	dir := filepath.Join(cache, "kernel")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	have, err := filepath.Glob(filepath.Join(dir, "linux-image-*_amd64.deb"))
	if err != nil {
		return "", fmt.Errorf("reading the cache folder: %w", err)
	}
	if len(have) > 0 {
		return have[len(have)-1], nil
	}
	deps, err := run(ctx, "", "apt-cache", "depends", "linux-image-amd64")
	if err != nil {
		return "", fmt.Errorf("finding the kernel package: %w", err)
	}
	name := ""
	for _, line := range strings.Split(string(deps), "\n") {
		if _, dep, ok := strings.Cut(line, "Depends: "); ok && strings.HasPrefix(dep, "linux-image-") {
			name = strings.TrimSpace(dep)
		}
	}
	if name == "" {
		return "", fmt.Errorf("linux-image-amd64 names no kernel; run apt-get update")
	}
	work, err := os.MkdirTemp(dir, ".get-")
	if err != nil {
		return "", fmt.Errorf("making a download folder: %w", err)
	}
	defer os.RemoveAll(work)
	if _, err := run(ctx, work, "apt-get", "download", "-q", name); err != nil {
		return "", fmt.Errorf("downloading the kernel: %w", err)
	}
	got, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(got) != 1 {
		return "", fmt.Errorf("apt-get left %d packages for %s, not one", len(got), name)
	}
	deb := filepath.Join(dir, filepath.Base(got[0]))
	if err := os.Rename(got[0], deb); err != nil {
		return "", fmt.Errorf("keeping the kernel package: %w", err)
	}
	return deb, nil
}

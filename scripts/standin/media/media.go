// Package media builds the stand-in's installation medium on the host: an ISO
// in the shape of a Windows Server medium (files in UDF only, an EFI boot image,
// a real install.wim) that boots a small Linux in place of Windows PE.
//
// Everything comes from packages of Debian, from this module and, optionally,
// from a PowerShell that the caller names. The same inputs give the same bytes.
// It serves tests and demonstrations: nothing that ends up in the wbox binary
// may import it, and it must not import what runs inside the guest.
package media

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// Version is the stand-in's own version: it changes when a medium behaves in a
// way that a box made with an older one could not show.
const Version = "1"

// Label is the volume label of the medium.
const Label = "WBOX_STAND_IN"

// epoch is the time stamp of everything on the medium.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Options says what to build.
type Options struct {
	Release    string // the Windows Server played: "2022" (the default) or "2025"
	PowerShell string // PowerShell 7 for Linux, a folder or a .tar.gz or .tar.xz; empty for none
	Containerd string // a folder with Debian's containerd and ctr, for images in a box; empty for none. It needs PowerShell
	Cache      string // where the kernel package is kept between builds; empty for DefaultCache
}

// Marker is wbox-stand-in.json, the file at the medium's root that tells a
// stand-in from Windows.
type Marker struct {
	StandIn    bool   `json:"standIn"`    // always true
	Version    string `json:"version"`    // Version
	Release    string `json:"release"`    // "2022" or "2025"
	PowerShell string `json:"powershell"` // PowerShell's version, such as "7.6.9"; empty without one
	Containerd string `json:"containerd"` // containerd's version, such as "1.6.20"; empty without one
}

// DefaultCache returns the folder for downloads and finished media: the value of
// WBOX_STANDIN_CACHE or wbox-stand-in in the user's cache folder.
func DefaultCache() (string, error) {
	if dir := os.Getenv("WBOX_STANDIN_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return filepath.Join(dir, "wbox-stand-in"), nil
}

// Build writes the medium to out, which it replaces by rename. It runs go,
// apt-get, dpkg-deb, objcopy, mkfs.vfat, mcopy, mke2fs, wimlib-imagex and
// genisoimage; Missing says beforehand which of them this machine lacks.
func Build(ctx context.Context, opts Options, out string) error {
	// The programs are run in folders of their own.
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("finding the folder of the medium: %w", err)
	}
	if opts.Cache, err = absolute(opts.Cache); err != nil {
		return err
	}
	in, err := collect(ctx, opts)
	if err != nil {
		return err
	}
	defer in.close()
	return in.build(ctx, out)
}

// absolute makes a path absolute, but leaves an empty one empty.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the cache: %w", err)
	}
	return abs, nil
}

// Cached returns the path of a medium built from the options, building it where
// the cache holds none for exactly these inputs.
func Cached(ctx context.Context, opts Options) (_ string, err error) {
	if opts.Cache, err = absolute(opts.Cache); err != nil {
		return "", err
	}
	in, err := collect(ctx, opts)
	if err != nil {
		return "", err
	}
	defer in.close()
	key, err := in.key()
	if err != nil {
		return "", err
	}
	out := filepath.Join(in.cache, "media", key+".iso")
	now := time.Now()
	if err := os.Chtimes(out, now, now); err == nil {
		return out, nil // and it counts as used
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", fmt.Errorf("making the media folder: %w", err)
	}
	if err := in.build(ctx, out); err != nil {
		return "", err
	}
	if err := os.Chtimes(out, now, now); err != nil {
		return "", fmt.Errorf("marking the medium as used: %w", err)
	}
	return out, prune(filepath.Dir(out), keptMedia)
}

// keptMedia is how many media the cache keeps: both releases, with and without
// PowerShell, before and after a change.
const keptMedia = 8

// prune removes all but the media used last.
func prune(dir string, keep int) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.iso"))
	if err != nil {
		return err
	}
	used := map[string]time.Time{}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			used[path] = info.ModTime()
		}
	}
	sort.Slice(paths, func(i, j int) bool { return used[paths[i]].After(used[paths[j]]) })
	for _, path := range paths[min(keep, len(paths)):] {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an old medium: %w", err)
		}
	}
	return nil
}

// build makes the medium from collected inputs in a scratch folder beside out.
func (in *inputs) build(ctx context.Context, out string) error {
	work, err := os.MkdirTemp(filepath.Dir(out), ".standin-")
	if err != nil {
		return fmt.Errorf("making a scratch folder: %w", err)
	}
	defer os.RemoveAll(work)
	tree := filepath.Join(work, "tree")
	for _, dir := range []string{"sources", "efi/boot", "efi/microsoft/boot"} {
		if err := os.MkdirAll(filepath.Join(tree, dir), 0o755); err != nil {
			return fmt.Errorf("making the medium's folders: %w", err)
		}
	}
	steps := []struct {
		what string
		do   func(context.Context, string, string) error
	}{
		{"PowerShell ready", in.findPowerShell},
		{"containerd ready", in.findContainerd},
		{"the boot files", in.writeBootFiles},
		{"the root file system", in.writeRoot},
		{"install.wim", in.writeImages},
		{"the marker", in.writeMarker},
		{"the ISO", in.writeISO},
	}
	for _, step := range steps {
		if err := step.do(ctx, work, tree); err != nil {
			return fmt.Errorf("making %s: %w", step.what, err)
		}
	}
	if err := os.Rename(filepath.Join(work, "medium.iso"), out); err != nil {
		return fmt.Errorf("moving the medium into place: %w", err)
	}
	return nil
}

func (in *inputs) writeMarker(_ context.Context, _, tree string) error {
	data, err := json.Marshal(Marker{StandIn: true, Version: Version, Release: in.release.name, PowerShell: in.psVersion, Containerd: in.ctrVersion})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(tree, "wbox-stand-in.json"), append(data, '\n'), 0o644)
}

package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Info describes an image file.
type Info struct {
	Format        string // such as "qcow2"
	VirtualSize   int64  // bytes that the guest sees
	ActualSize    int64  // bytes that the file takes on this host
	Backing       string // the backing file as the image names it; empty where there is none
	BackingFormat string
	Compression   string // a qcow2 image's compression type, such as "zlib"
}

// Create makes an empty qcow2 image of size bytes, a multiple of 512.
func (t *Tool) Create(ctx context.Context, path string, size int64) error {
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = t.run(ctx, "create", "-q", "-f", "qcow2", path, strconv.FormatInt(size, 10))
	}
	if err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	return nil
}

// CreateOverlay makes overlay a copy-on-write layer over the qcow2 image base,
// which is never written to. The overlay names base relative to its own
// folder, so that both can be moved together, and states base's format, since
// guessing it would let a guest choose it.
func (t *Tool) CreateOverlay(ctx context.Context, base, overlay string) error {
	overlay, err := filepath.Abs(overlay)
	if err != nil {
		return fmt.Errorf("making the overlay: %w", err)
	}
	rel, err := relative(filepath.Dir(overlay), base)
	if err != nil {
		return fmt.Errorf("making the overlay: %w", err)
	}
	if _, err := t.run(ctx, "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", rel, overlay); err != nil {
		return fmt.Errorf("making the overlay: %w", err)
	}
	return nil
}

// SetBacking makes overlay name base relative to the folder from, where the
// overlay is going to lie. It changes the name alone: base must hold what the
// former backing file held.
func (t *Tool) SetBacking(ctx context.Context, overlay, base, from string) error {
	overlay, err := filepath.Abs(overlay)
	if err != nil {
		return fmt.Errorf("naming the backing file: %w", err)
	}
	rel, err := relative(from, base)
	if err != nil {
		return fmt.Errorf("naming the backing file: %w", err)
	}
	if _, err := t.run(ctx, "rebase", "-q", "-u", "-f", "qcow2", "-F", "qcow2", "-b", rel, overlay); err != nil {
		return fmt.Errorf("naming the backing file: %w", err)
	}
	return nil
}

// relative returns target as seen from folder, in the form qemu-img takes.
// Links are resolved first: ".." leads elsewhere through them.
func relative(folder, target string) (string, error) {
	folder, err := realPath(folder)
	if err != nil {
		return "", err
	}
	if target, err = realPath(target); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(folder, target)
	if err != nil {
		return "", err
	}
	rel = filepath.ToSlash(rel)
	if !strings.HasPrefix(rel, "../") {
		rel = "./" + rel // else "a:b" would be read as protocol "a"
	}
	return rel, nil
}

func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// Info reads an image's header. The format is qcow2, never guessed.
func (t *Tool) Info(ctx context.Context, path string) (Info, error) {
	out, err := t.run(ctx, "info", "-f", "qcow2", "--output", "json", path)
	if err != nil {
		return Info{}, fmt.Errorf("reading the image's header: %w", err)
	}
	var j struct {
		Format        string `json:"format"`
		VirtualSize   int64  `json:"virtual-size"`
		ActualSize    int64  `json:"actual-size"`
		Backing       string `json:"backing-filename"`
		BackingFormat string `json:"backing-filename-format"`
		Specific      struct {
			Data struct {
				Compression string `json:"compression-type"`
			} `json:"data"`
		} `json:"format-specific"`
	}
	if err := json.Unmarshal(out, &j); err != nil {
		return Info{}, fmt.Errorf("reading qemu-img's answer: %w", err)
	}
	return Info{Format: j.Format, VirtualSize: j.VirtualSize, ActualSize: j.ActualSize,
		Backing: j.Backing, BackingFormat: j.BackingFormat, Compression: j.Specific.Data.Compression}, nil
}

// FlattenOptions say how Flatten writes.
type FlattenOptions struct {
	// Compress packs clusters with zlib, which every QEMU reads. Leave it off
	// for an image that goes into a compressed archive: packing twice costs
	// time and gains half a percent.
	Compress bool
}

// Flatten writes src and everything it is layered on to dst, one qcow2 image
// without a backing file, and compares the two afterwards: an image cut short
// passes "qemu-img check" (measured, 20 of 20). The bytes depend on src's
// content alone; -W, which would be quicker, makes them vary (measured).
// dst must be a temporary name: a killed run leaves a part of it there.
func (t *Tool) Flatten(ctx context.Context, src, dst string, opts FlattenOptions) error {
	src, err := filepath.Abs(src)
	if err != nil {
		return fmt.Errorf("flattening the image: %w", err)
	}
	if dst, err = filepath.Abs(dst); err != nil {
		return fmt.Errorf("flattening the image: %w", err)
	}
	args := []string{"convert", "-q", "-f", "qcow2", "-O", "qcow2"}
	if opts.Compress {
		args = append(args, "-c", "-o", "compression_type=zlib")
	}
	if _, err := t.run(ctx, append(args, src, dst)...); err != nil {
		return fmt.Errorf("flattening the image: %w", err)
	}
	if err := t.Compare(ctx, src, dst); err != nil {
		return fmt.Errorf("checking the flattened image: %w", err)
	}
	info, err := t.Info(ctx, dst)
	if err == nil && info.Backing != "" {
		err = fmt.Errorf("it still names a backing file: %s", info.Backing)
	}
	if err != nil {
		return fmt.Errorf("checking the flattened image: %w", err)
	}
	return nil
}

// Compare returns nil where a guest reads the same bytes from both images, of
// the same length.
func (t *Tool) Compare(ctx context.Context, a, b string) error {
	ia, err := t.Info(ctx, a)
	if err != nil {
		return err
	}
	ib, err := t.Info(ctx, b)
	if err != nil {
		return err
	}
	if ia.VirtualSize != ib.VirtualSize {
		return fmt.Errorf("comparing images: one has %d bytes, the other %d", ia.VirtualSize, ib.VirtualSize)
	}
	out, err := t.run(ctx, "compare", "-f", "qcow2", "-F", "qcow2", a, b)
	if err != nil && exitCode(err) == 1 {
		return fmt.Errorf("comparing images: they differ: %s", strings.TrimSpace(string(out)))
	}
	if err != nil {
		return fmt.Errorf("comparing images: %w", err)
	}
	return nil
}

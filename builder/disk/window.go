package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// window is a part of the bytes that a guest sees on a qcow2 image.
type window struct {
	disk   string // absolute
	offset int64  // bytes, a multiple of 512
	size   int64  // bytes, a multiple of 512
}

// name returns the window in the form qemu-img takes for an image. Through the
// raw driver on top of qcow2 only the window can be reached, whatever goes
// wrong; writes go to the topmost layer.
func (w window) name() (string, error) {
	type file struct {
		Driver   string `json:"driver"`
		Filename string `json:"filename"`
	}
	type image struct {
		Driver string `json:"driver"`
		File   file   `json:"file"`
	}
	data, err := json.Marshal(struct {
		Driver string `json:"driver"`
		Offset int64  `json:"offset"`
		Size   int64  `json:"size"`
		File   image  `json:"file"`
	}{"raw", w.offset, w.size, image{"qcow2", file{"file", w.disk}}})
	return "json:" + string(data), err
}

// read copies the window to the file path, sparse where it holds zeros.
func (t *Tool) read(ctx context.Context, w window, path string) error {
	name, err := w.name()
	if err == nil {
		_, err = t.run(ctx, "convert", "-q", "-f", "raw", "-O", "raw", name, path)
	}
	if err == nil {
		err = hasSize(path, w.size)
	}
	if err != nil {
		return fmt.Errorf("reading %d bytes at %d of the disk: %w", w.size, w.offset, err)
	}
	return nil
}

// write copies the file path, which has the window's size, into the window.
func (t *Tool) write(ctx context.Context, w window, path string) error {
	name, err := w.name()
	if err == nil {
		err = hasSize(path, w.size)
	}
	if err == nil {
		_, err = t.run(ctx, "convert", "-q", "-n", "-f", "raw", "-O", "raw", path, name)
	}
	if err != nil {
		return fmt.Errorf("writing %d bytes at %d of the disk: %w", w.size, w.offset, err)
	}
	return nil
}

func hasSize(path string, want int64) error {
	info, err := os.Stat(path)
	if err == nil && info.Size() != want {
		err = fmt.Errorf("%s has %d bytes, want %d", path, info.Size(), want)
	}
	return err
}

// readBytes reads a small window through a file in scratch.
func (t *Tool) readBytes(ctx context.Context, w window, scratch string) ([]byte, error) {
	path := filepath.Join(scratch, "window")
	if err := t.read(ctx, w, path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// writeBytes writes a small window through a file in scratch.
func (t *Tool) writeBytes(ctx context.Context, disk string, offset int64, data []byte, scratch string) error {
	path := filepath.Join(scratch, "window")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return t.write(ctx, window{disk, offset, int64(len(data))}, path)
}

package iso

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/ctxio"
)

// File is a file to put on a seed.
type File struct {
	Path string // below the seed's root, with forward slashes: "drivers/viostor.inf"
	Size int64  // bytes; Open must give exactly as many
	Open func() (io.ReadCloser, error)
}

// FromBytes is a File of data.
func FromBytes(path string, data []byte) File {
	return File{path, int64(len(data)), func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
}

// FromDisk is a File whose content is the regular file at host, which is read
// when the seed is written.
func FromDisk(path, host string) (File, error) {
	info, err := os.Stat(host)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is no regular file", host)
	}
	return File{path, info.Size(), func() (io.ReadCloser, error) { return os.Open(host) }}, nil
}

// CreateSeed writes the seed to a file, which appears complete or not at all.
// Only its owner may read it, since a seed's answer file has passwords in it.
func CreateSeed(ctx context.Context, path, label string, files []File) error {
	return atomicfile.Func(ctx, path, 0o600, func(w io.Writer) error {
		return WriteSeed(ctx, w, label, files)
	})
}

// WriteSeed writes a CD image with a volume label and files: ISO 9660 for
// whatever reads it, and Joliet, which Windows and Linux prefer, with the names
// as they are. The same label, paths and contents give the same bytes on every
// system, in whatever order the files come. Names that Windows can't have, or
// that differ from another only in case, are errors, and so is a label that is
// not 1 to 16 of A-Z, 0-9 and _.
func WriteSeed(ctx context.Context, w io.Writer, label string, files []File) error {
	if err := checkLabel(label); err != nil {
		return err
	}
	root, err := plantTree(files)
	if err != nil {
		return err
	}
	p, err := layOut(root)
	if err != nil {
		return err
	}
	if _, err := w.Write(p.head(label)); err != nil {
		return err
	}
	for _, n := range p.files {
		if err := copyFile(ctx, w, n.file); err != nil {
			return fmt.Errorf("writing %s to the seed: %w", n.file.Path, err)
		}
	}
	return nil
}

// copyFile writes one file and fills its last sector.
func copyFile(ctx context.Context, w io.Writer, f File) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	in := ctxio.Reader(ctx, r)
	n, err := io.CopyN(w, in, f.Size)
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it ended after %d of %d bytes", n, f.Size)
	case err != nil:
		return err
	}
	// A longer file would be cut off silently.
	switch n, err := io.ReadFull(in, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("it has more than %d bytes", f.Size)
	case !errors.Is(err, io.EOF):
		return err
	}
	_, err = w.Write(make([]byte, padding(f.Size)))
	return err
}

// padding is what is missing to whole sectors.
func padding(size int64) int64 { return -size & (sectorSize - 1) }

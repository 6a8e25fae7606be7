package component

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/wbox-dev/wbox/builder/internal/ctxio"
)

// Bounds of what is read of an image. A Windows base image unpacks to 6 GB.
const (
	maxImage    = 16 << 30 // bytes that all layers unpack to
	maxProgram  = 1 << 30  // bytes of one program
	maxPrograms = 4 << 30  // bytes of all programs
	maxSmall    = 1 << 30  // bytes that any layer may unpack to
	maxRatio    = 200      // bytes that one byte of a larger layer may unpack to
	maxEntries  = 1 << 20  // entries of one layer or of the image's file
	maxMeta     = 4 << 20  // bytes of a JSON document
	maxLayers   = 256
	maxImages   = 16
	maxDepth    = 4 // indexes within indexes
)

// archive is an image's tar file, of which the entries' places are known.
type archive struct {
	file    *os.File
	entries map[string]entry
}

// entry is a file of an archive, or a link to one.
type entry struct {
	at, size int64
	link     string
}

// openArchive reads the list of a tar file. One that is compressed as a whole is
// unpacked into scratch first.
func openArchive(ctx context.Context, name, scratch string) (*archive, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	magic := make([]byte, 2)
	if n, _ := f.ReadAt(magic, 0); n == 2 && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := unpackFile(ctx, f, filepath.Join(scratch, "image.tar"))
		f.Close()
		if err != nil {
			return nil, err
		}
		f = plain
	}
	a := &archive{file: f, entries: map[string]entry{}}
	if err := a.list(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

// unpackFile unpacks a gzip file.
func unpackFile(ctx context.Context, from io.Reader, to string) (*os.File, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("unpacking it: %w", err)
	}
	out, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(out, io.LimitReader(ctxio.Reader(ctx, z), maxImage+1))
	if err == nil && n > maxImage {
		err = fmt.Errorf("it unpacks to more than %d bytes", int64(maxImage))
	}
	if err == nil {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err != nil {
		out.Close()
		return nil, errors.Join(fmt.Errorf("unpacking it: %w", err), os.Remove(to))
	}
	return out, nil
}

// list notes where entries lie.
func (a *archive) list(ctx context.Context) error {
	r := tar.NewReader(a.file)
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("it is no tar file that can be read: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case n >= maxEntries:
			return errors.New("it has too many entries")
		}
		name, err := safeName(h.Name)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := a.file.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			a.entries[name] = entry{at: at, size: h.Size}
		case tar.TypeSymlink, tar.TypeLink: // docker save writes a layer that two images share as a link
			to := h.Linkname
			if h.Typeflag == tar.TypeSymlink {
				to = path.Join(path.Dir(name), to)
			}
			a.entries[name] = entry{link: path.Clean(to)}
		}
	}
}

// safeName refuses the name of an entry that would lie outside of its folder.
func safeName(name string) (string, error) {
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") || strings.HasPrefix(clean, "/") || strings.Contains(name, "\x00") || len(name) > 4096 {
		return "", fmt.Errorf("it has an entry with the unsafe name %q", name[:min(len(name), 200)])
	}
	return clean, nil
}

// open returns the content of an entry.
func (a *archive) open(name string) (*io.SectionReader, error) {
	for range 2 {
		e, ok := a.entries[path.Clean(name)]
		if !ok {
			break
		}
		if e.link == "" {
			return io.NewSectionReader(a.file, e.at, e.size), nil
		}
		name = e.link
	}
	return nil, fmt.Errorf("it has no %s", name)
}

// json reads a JSON document.
func (a *archive) json(name string, v any) error {
	r, err := a.open(name)
	if err != nil {
		return err
	}
	if r.Size() > maxMeta {
		return fmt.Errorf("its %s is too large", name)
	}
	data, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("reading its %s: %w", name, err)
	}
	return nil
}

// inflate returns what a layer unpacks to: gzip, zstd or plain.
func inflate(r io.ReadSeeker) (io.ReadCloser, error) {
	magic := make([]byte, 4)
	n, err := io.ReadFull(r, magic)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic[:n], []byte{0x1f, 0x8b}):
		return gzip.NewReader(r)
	case bytes.Equal(magic[:n], []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

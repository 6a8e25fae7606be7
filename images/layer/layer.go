// Package layer makes layers of container images from files: for Linux and, with
// the security descriptors that Windows wants, for Windows. The same files give
// the same bytes whatever the machine, its clock, its umask and the order in
// which they are named. It knows no images and no registries, and imports
// nothing of ours but builder/fault and images/internal.
package layer

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
)

// Options say how a layer is made.
type Options struct {
	Created time.Time       // when every file says it was changed; whole seconds count
	Dir     string          // a folder that the layer's blob is kept in: it must live as long as the layer
	Type    types.MediaType // of the blob; default types.OCILayer
}

// entry is a File as it goes into the archive.
type entry struct {
	header tar.Header
	open   func() (io.ReadCloser, error) // nil for what has no content
}

// write archives, compresses and keeps the entries in one pass, so that memory
// doesn't grow with them.
func write(ctx context.Context, entries []entry, opts Options) (*kept, error) {
	f, err := os.CreateTemp(opts.Dir, "layer-*")
	if err != nil {
		return nil, fmt.Errorf("making a file for the layer: %w", err)
	}
	defer os.Remove(f.Name()) // nothing is there any more once it was renamed
	defer f.Close()
	blob, content := sha256.New(), sha256.New()
	buffer := bufio.NewWriterSize(f, 1<<20)
	// This gzip is pinned in go.mod; the bytes of the standard library's change
	// with the Go version that wbox was compiled with.
	packed := gzip.NewWriter(io.MultiWriter(buffer, blob))
	archive := tar.NewWriter(io.MultiWriter(packed, content))
	for i := range entries {
		if err := entries[i].writeTo(ctx, archive); err != nil {
			return nil, fmt.Errorf("adding %s to the layer: %w", entries[i].header.Name, err)
		}
	}
	if err := errors.Join(archive.Close(), packed.Close(), buffer.Flush()); err != nil {
		return nil, fmt.Errorf("writing the layer: %w", err)
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("writing the layer: %w", err)
	}
	k := &kept{digest: hash(blob.Sum(nil)), diffID: hash(content.Sum(nil)), size: size, mediaType: opts.Type}
	if k.mediaType == "" {
		k.mediaType = types.OCILayer
	}
	k.path = filepath.Join(opts.Dir, "sha256-"+k.digest.Hex+".tar.gz")
	if err := errors.Join(f.Close(), os.Rename(f.Name(), k.path)); err != nil {
		return nil, fmt.Errorf("keeping the layer: %w", err)
	}
	return k, nil
}

func hash(sum []byte) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum)} }

func (e *entry) writeTo(ctx context.Context, w *tar.Writer) error {
	if err := w.WriteHeader(&e.header); err != nil || e.open == nil {
		return err
	}
	r, err := e.open()
	if err != nil {
		return err
	}
	defer r.Close()
	// A file that grows is refused by the archive, one that shrinks here.
	n, err := io.Copy(w, &stopping{ctx, r})
	if err == nil && n != e.header.Size {
		err = fmt.Errorf("got %d bytes of %d: it changed while it was read", n, e.header.Size)
	}
	return err
}

// stopping is a reader that ends with its context.
type stopping struct {
	ctx context.Context //nolint:containedctx // it lives for one copy
	r   io.Reader
}

func (s *stopping) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// kept is a layer whose blob lies in a file.
type kept struct {
	digest, diffID v1.Hash
	size           int64
	mediaType      types.MediaType
	path           string
}

// Digest, DiffID, Compressed, Uncompressed, Size and MediaType are v1.Layer's.
func (k *kept) Digest() (v1.Hash, error)            { return k.digest, nil }
func (k *kept) DiffID() (v1.Hash, error)            { return k.diffID, nil }
func (k *kept) Size() (int64, error)                { return k.size, nil }
func (k *kept) MediaType() (types.MediaType, error) { return k.mediaType, nil }
func (k *kept) Compressed() (io.ReadCloser, error)  { return os.Open(k.path) }
func (k *kept) Uncompressed() (rc io.ReadCloser, err error) {
	f, err := os.Open(k.path)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &unpacked{r, f}, nil
}

type unpacked struct {
	io.Reader
	f *os.File
}

func (u *unpacked) Close() error { return u.f.Close() }

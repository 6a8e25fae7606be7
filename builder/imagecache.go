package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/images"
)

// Images is the store as a cache of images: their blobs and manifests are
// blobs of it like others, pruned and verified like others.
func (c *Cache) Images() images.Cache { return imageCache{c.store} }

type imageCache struct{ store *cas.Store }

// Open opens a blob and records that it is used.
func (i imageCache) Open(_ context.Context, digest string) (io.ReadCloser, error) {
	b, ok, err := i.store.Blob(digest)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fs.ErrNotExist
	}
	f, err := os.Open(b.Path)
	if err == nil {
		i.store.TouchBlob(digest)
	}
	return f, err
}

// Create begins a blob, in a file of its own: several may bring the same one.
func (i imageCache) Create(_ context.Context, digest string) (images.Draft, error) {
	like, err := i.store.Download("image")
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(strings.TrimSuffix(like, "image"), "image."+strings.TrimPrefix(digest, "sha256:")[:12]+".*.part")
	if err != nil {
		return nil, fmt.Errorf("making a file for a download: %w", err)
	}
	return &imageDraft{i.store, digest, f}, nil
}

// Remove takes a damaged blob out.
func (i imageCache) Remove(_ context.Context, digest string) error { return i.store.RemoveBlob(digest) }

type imageDraft struct {
	store  *cas.Store
	digest string
	f      *os.File // nil: ended
}

// Write adds content.
func (d *imageDraft) Write(p []byte) (int, error) { return d.f.Write(p) }

// Commit makes the content a blob.
func (d *imageDraft) Commit() error {
	f := d.f
	d.f = nil
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
		_, err = d.store.Adopt(f.Name(), d.digest)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("keeping a download: %w", err)
	}
	return nil
}

// Discard drops the content.
func (d *imageDraft) Discard() {
	if d.f != nil {
		d.f.Close()
		_ = os.Remove(d.f.Name())
		d.f = nil
	}
}

package images

import (
	"context"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Load returns the image that src has for a platform, as something to put
// layers on. Its layers are fetched when they are read; ctx must live as long.
func Load(ctx context.Context, src Source, p Platform) (v1.Image, error) {
	m, err := Select(ctx, src, []Platform{p})
	if err != nil {
		return nil, err
	}
	if m.IsIndex() || len(m.Blobs) == 0 {
		return nil, fmt.Errorf("%s is no image of one platform", src)
	}
	rc, err := src.Blob(ctx, m.Blobs[0])
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of %s: %w", src, err)
	}
	defer rc.Close()
	config, err := io.ReadAll(io.LimitReader(rc, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of %s: %w", src, err)
	}
	img, err := partial.CompressedToImage(&loaded{ctx, src, m, config})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", src, err)
	}
	return img, nil
}

// loaded is an image of a Source in the shape that go-containerregistry wants.
type loaded struct {
	ctx    context.Context //nolint:containedctx // the interface has none
	src    Source
	m      Manifest
	config []byte
}

// RawManifest, RawConfigFile, MediaType and LayerByDigest are
// partial.CompressedImageCore's.
func (l *loaded) RawManifest() ([]byte, error)        { return l.m.Raw, nil }
func (l *loaded) RawConfigFile() ([]byte, error)      { return l.config, nil }
func (l *loaded) MediaType() (types.MediaType, error) { return l.m.MediaType, nil }
func (l *loaded) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	for _, d := range l.m.Blobs {
		if d.Digest == h {
			return &loadedLayer{l, d}, nil
		}
	}
	return nil, fmt.Errorf("%s has no %s", l.src, h)
}

type loadedLayer struct {
	of *loaded
	d  v1.Descriptor
}

// Digest, Compressed, Size, MediaType and Descriptor are
// partial.CompressedLayer's.
func (l *loadedLayer) Digest() (v1.Hash, error)            { return l.d.Digest, nil }
func (l *loadedLayer) Compressed() (io.ReadCloser, error)  { return l.of.src.Blob(l.of.ctx, l.d) }
func (l *loadedLayer) Size() (int64, error)                { return l.d.Size, nil }
func (l *loadedLayer) MediaType() (types.MediaType, error) { return l.d.MediaType, nil }
func (l *loadedLayer) Descriptor() (*v1.Descriptor, error) { return &l.d, nil }

package images

import (
	"context"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Select returns what src has for the platforms: the manifest of a single one,
// an index of several, and without any what its name stands for. One that it is
// not made for is a *fault.Problem of class fault.Input. A source without an
// index is taken as it is.
func Select(ctx context.Context, src Source, platforms []Platform) (Manifest, error) {
	whole, err := src.Root(ctx)
	if err != nil {
		return Manifest{}, err
	}
	chosen, err := choose(whole, src, platforms)
	if err != nil || chosen.Raw != nil {
		return chosen, err
	}
	return src.Manifest(ctx, chosen.Children[0])
}

// BuiltIndex is the Source of an index that go-containerregistry has or makes.
// from names the place.
func BuiltIndex(index v1.ImageIndex, from string) Source { return builtIndexSource{index, from} }

type builtIndexSource struct {
	index v1.ImageIndex
	from  string
}

// Root, Manifest, Blob and String are Source's.
func (s builtIndexSource) Root(context.Context) (Manifest, error) {
	raw, err := s.index.RawManifest()
	if err != nil {
		return Manifest{}, fmt.Errorf("making the index of %s: %w", s.from, err)
	}
	mt, err := s.index.MediaType()
	if err != nil {
		return Manifest{}, fmt.Errorf("making the index of %s: %w", s.from, err)
	}
	return ParseManifest(raw, mt)
}

func (s builtIndexSource) Manifest(ctx context.Context, d v1.Descriptor) (Manifest, error) {
	img, err := s.index.Image(d.Digest)
	if err != nil {
		return Manifest{}, fmt.Errorf("finding %s in %s: %w", d.Digest, s.from, err)
	}
	return Built(img, s.from).Root(ctx)
}

func (s builtIndexSource) Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	whole, err := s.Root(ctx)
	if err != nil {
		return nil, err
	}
	for _, child := range whole.Children {
		m, err := s.Manifest(ctx, child)
		if err != nil {
			return nil, err
		}
		for _, b := range m.Blobs {
			if b.Digest == d.Digest {
				img, err := s.index.Image(child.Digest)
				if err != nil {
					return nil, fmt.Errorf("finding %s in %s: %w", child.Digest, s.from, err)
				}
				return Built(img, s.from).Blob(ctx, d)
			}
		}
	}
	return nil, fmt.Errorf("%s has no %s", s.from, d.Digest)
}

func (s builtIndexSource) String() string { return s.from }

package images

import (
	"context"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// Source gives the content of one image: of a registry, of an archive, or of
// one that was just built. Implementations are safe for concurrent use.
type Source interface {
	// Root returns what the image's name stands for: an index, or the manifest
	// of its only platform.
	Root(ctx context.Context) (Manifest, error)
	// Manifest returns one of an index's children.
	Manifest(ctx context.Context, d v1.Descriptor) (Manifest, error)
	// Blob opens a config or layer. The reader ends with an error where the
	// content is not what the descriptor says.
	Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
	// String names the place, for people.
	String() string
}

// Remote is the Source of an image in a registry. What c's Cache has is not
// fetched again, and what is fetched whole goes into it.
func (c *Client) Remote(ref Reference) Source { return remoteSource{c, ref} }

type remoteSource struct {
	c   *Client
	ref Reference
}

func (s remoteSource) Root(ctx context.Context) (Manifest, error) { return s.c.Manifest(ctx, s.ref) }

func (s remoteSource) Manifest(ctx context.Context, d v1.Descriptor) (Manifest, error) {
	return s.c.Manifest(ctx, s.ref.Context().Digest(d.Digest.String()))
}

func (s remoteSource) Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	return s.c.Blob(ctx, s.ref.Context(), d)
}

func (s remoteSource) String() string { return s.ref.Name() }

// referenceOf is where a source lies in a registry; nil where it does not.
func referenceOf(s Source) Reference {
	switch s := s.(type) {
	case remoteSource:
		return s.ref
	case *once:
		return referenceOf(s.Source)
	}
	return nil
}

// Built is the Source of an image of one platform that go-containerregistry
// has or makes, such as one read from an archive. from names the place.
func Built(img v1.Image, from string) Source { return builtSource{img, from} }

type builtSource struct {
	img  v1.Image
	from string
}

func (s builtSource) Root(context.Context) (Manifest, error) {
	raw, err := s.img.RawManifest()
	if err != nil {
		return Manifest{}, fmt.Errorf("making the manifest of %s: %w", s.from, err)
	}
	mt, err := s.img.MediaType()
	if err != nil {
		return Manifest{}, fmt.Errorf("making the manifest of %s: %w", s.from, err)
	}
	return ParseManifest(raw, mt)
}

func (s builtSource) Manifest(_ context.Context, d v1.Descriptor) (Manifest, error) {
	return Manifest{}, fmt.Errorf("%s is no index and has no manifest %s", s.from, d.Digest)
}

func (s builtSource) Blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	l, err := s.img.LayerByDigest(d.Digest)
	if err != nil {
		cfg, cerr := partial.ConfigLayer(s.img)
		if cerr != nil {
			return nil, fmt.Errorf("finding %s in %s: %w", d.Digest, s.from, err)
		}
		if h, herr := cfg.Digest(); herr != nil || h != d.Digest {
			return nil, fmt.Errorf("finding %s in %s: %w", d.Digest, s.from, err)
		}
		l = cfg
	}
	return l.Compressed()
}

func (s builtSource) String() string { return s.from }

package images

import (
	"bytes"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// maxManifest is how long in bytes a manifest or index may be: what the
// distribution specification asks registries to accept at least.
const maxManifest = 4 << 20

// Manifest is a manifest or an index, as it was written: its bytes are what
// has the digest, so they are handed on and never written anew.
type Manifest struct {
	Digest    v1.Hash
	MediaType types.MediaType
	Raw       []byte
	Children  []v1.Descriptor // of an index: its manifests, in order
	Blobs     []v1.Descriptor // of a manifest: its config and its layers, in order
}

// ParseManifest reads a manifest or an index. mediaType is what came with it;
// it counts where the content doesn't say its type. What is neither (the
// schema of 2015, an error page) is an error.
func ParseManifest(raw []byte, mediaType types.MediaType) (Manifest, error) {
	if len(raw) > maxManifest {
		return Manifest{}, fmt.Errorf("it is longer than %d bytes", maxManifest)
	}
	m := Manifest{MediaType: mediaType, Raw: raw}
	var err error
	if m.Digest, _, err = v1.SHA256(bytes.NewReader(raw)); err != nil {
		return Manifest{}, fmt.Errorf("hashing a manifest: %w", err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil {
		return Manifest{}, fmt.Errorf("it is no manifest: %w", err)
	}
	switch {
	case index.MediaType != "":
		m.MediaType = index.MediaType
	case mediaType == "" && index.Manifests != nil:
		m.MediaType = types.OCIImageIndex // OCI's may leave it out, Docker's may not
	case mediaType == "":
		m.MediaType = types.OCIManifestSchema1
	}
	if index.SchemaVersion != 2 {
		return Manifest{}, fmt.Errorf("it has schema version %d, and only 2 is understood", index.SchemaVersion)
	}
	switch {
	case m.MediaType.IsIndex():
		m.Children = index.Manifests
		return m, check(m.Children, "manifest")
	case m.MediaType.IsImage():
	default:
		return Manifest{}, fmt.Errorf("it has the type %q, which is no image's", m.MediaType)
	}
	img, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return Manifest{}, fmt.Errorf("it is no manifest: %w", err)
	}
	m.Blobs = append([]v1.Descriptor{img.Config}, img.Layers...)
	return m, check(m.Blobs, "blob")
}

// check refuses descriptors that name nothing: their digests go into addresses.
func check(all []v1.Descriptor, what string) error {
	for i, d := range all {
		if d.Digest.Algorithm != "sha256" || len(d.Digest.Hex) != 64 || d.Size < 0 {
			return fmt.Errorf("its %s %d has the digest %q and %d bytes", what, i, d.Digest, d.Size)
		}
	}
	return nil
}

// IsIndex says whether it lists manifests, one a platform.
func (m Manifest) IsIndex() bool { return m.MediaType.IsIndex() }

// Descriptor is what an index or a reference says of it.
func (m Manifest) Descriptor() v1.Descriptor {
	return v1.Descriptor{MediaType: m.MediaType, Size: int64(len(m.Raw)), Digest: m.Digest}
}

package controlplane

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// plain is an image that is no artifact. Without it, go-containerregistry takes
// the type of the configuration for the type of an artifact, which the entries
// of other tools' indexes don't have.
type plain struct{ v1.Image }

// ArtifactType is none.
func (plain) ArtifactType() (string, error) { return "", nil }

// Index lists images of several platforms under one digest, in the order given.
func Index(images ...v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, img := range images {
		config, err := img.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("reading a configuration: %w", err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: plain{img}, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture, Variant: config.Variant}}})
	}
	return index, nil
}

package imagestest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Spec describes an image to make.
type Spec struct {
	Platforms []v1.Platform // more than one: an index
	Layers    int           // of each platform
	Size      int64         // bytes of each layer
	Foreign   string        // the address of a layer that may not be distributed, which each Windows platform has then
	Seed      uint64        // what the content depends on

	Uncompressed bool // the layers are stored as they are
}

// Linux and Windows are platforms as Kubernetes' images have them.
func Linux(arch string) v1.Platform { return v1.Platform{OS: "linux", Architecture: arch} }

// Windows is a platform of a build, such as "10.0.20348.2700".
func Windows(version string) v1.Platform {
	return v1.Platform{OS: "windows", Architecture: "amd64", OSVersion: version}
}

// Made is an image that was made.
type Made struct {
	Digest    v1.Hash
	Image     v1.Image      // nil where it is an index
	Index     v1.ImageIndex // nil where it is not
	Manifests int           // the index included
	Blobs     int           // distinct ones
}

// Make makes an image.
func Make(s Spec) (Made, error) {
	var m Made
	if len(s.Platforms) == 0 {
		s.Platforms = []v1.Platform{Linux("amd64")}
	}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.DockerManifestList)
	for i, p := range s.Platforms {
		img, err := one(s, p, int64(s.Seed)*100+int64(i)) //nolint:gosec // a seed
		if err != nil {
			return m, err
		}
		m.Manifests++
		m.Blobs += 1 + s.Layers
		if len(s.Platforms) == 1 {
			m.Image = img
			m.Digest, err = img.Digest()
			return m, err
		}
		digest, err := img.Digest()
		if err != nil {
			return m, err
		}
		size, err := img.Size()
		if err != nil {
			return m, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img,
			Descriptor: v1.Descriptor{MediaType: types.DockerManifestSchema2, Digest: digest, Size: size, Platform: &p}})
	}
	m.Manifests++
	m.Index = index
	var err error
	m.Digest, err = index.Digest()
	return m, err
}

func one(s Spec, p v1.Platform, seed int64) (v1.Image, error) {
	img, err := random.Image(s.Size, int64(s.Layers), random.WithSource(source(seed)))
	if err != nil {
		return nil, err
	}
	if s.Uncompressed {
		if img, err = uncompressed(img); err != nil {
			return nil, err
		}
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture, cfg.OSVersion = p.OS, p.Architecture, p.OSVersion
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		return nil, err
	}
	if s.Foreign == "" || p.OS != "windows" {
		return img, nil
	}
	layer, err := random.Layer(s.Size, types.DockerForeignLayer, random.WithSource(source(-seed-1)))
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.DockerForeignLayer, URLs: []string{s.Foreign}})
}

// source gives the same numbers for the same seed.
func source(seed int64) interface {
	Int63() int64
	Seed(int64)
} {
	return &numbers{rand.New(rand.NewPCG(uint64(seed), 1))} //nolint:gosec // a seed
}

type numbers struct{ r *rand.Rand }

func (n *numbers) Int63() int64 { return n.r.Int64() }
func (n *numbers) Seed(int64)   {}

// Push makes an image and puts it into a registry under PATH:TAG.
func (r *Registry) Push(ctx context.Context, path string, s Spec) (Made, error) {
	m, err := Make(s)
	if err != nil {
		return m, err
	}
	ref, err := name.ParseReference(r.Host+"/"+path, name.Insecure)
	if err != nil {
		return m, fmt.Errorf("naming an image: %w", err)
	}
	if m.Index != nil {
		return m, remote.WriteIndex(ref, m.Index, remote.WithContext(ctx), remote.WithNondistributable)
	}
	return m, remote.Write(ref, m.Image, remote.WithContext(ctx), remote.WithNondistributable)
}

// uncompressed returns an image whose layers are stored without compression.
func uncompressed(img v1.Image) (v1.Image, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	out := mutate.MediaType(empty.Image, types.DockerManifestSchema2)
	for _, l := range layers {
		rc, err := l.Uncompressed()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(rc)
		if err != nil {
			return nil, err
		}
		if out, err = mutate.AppendLayers(out, static.NewLayer(data, types.DockerUncompressedLayer)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

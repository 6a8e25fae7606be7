package archive

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images"
)

// Member is one image in an archive.
type Member struct {
	Name      string // under which an import makes it known, with its registry and tag
	Digest    string // "sha256:…" of the manifest or index that this name will stand for
	Platforms []v1.Platform
}

// indexFile is where an OCI image layout lists its images.
const indexFile = "index.json"

// largestDocument bounds what is read of an archive into memory at once.
const largestDocument = 4 << 20

// Inspect lists the images in an archive that is an OCI image layout, as this
// package, skopeo and docker save since version 25 write it. Layers are not read
// and not checked: whoever imports the archive does that. What is none, or is a
// docker-archive only, is a *fault.Problem of class fault.Input about field: what
// containerd would make of that has another digest on every version of it.
func Inspect(ctx context.Context, field, file string) ([]Member, error) {
	bad := func(why string, err error) error {
		return &fault.Problem{Class: fault.Input, Field: field, Value: file, Why: why, Err: err,
			Fix: "name an archive that holds an OCI image layout: wbox images save writes one"}
	}
	index, err := readDocuments(ctx, file, []string{indexFile})
	if err != nil {
		return nil, bad("can't be read", err)
	}
	var top v1.IndexManifest
	switch raw := index[indexFile]; {
	case raw == nil:
		return nil, bad("holds no OCI image layout", nil)
	case json.Unmarshal(raw, &top) != nil:
		return nil, bad("has an index.json that can't be read", nil)
	case len(top.Manifests) == 0:
		return nil, bad("holds no image", nil)
	}
	var out []Member
	for _, d := range top.Manifests {
		m := Member{Name: nameOf(d), Digest: d.Digest.String()}
		if m.Name == "" {
			return nil, bad(fmt.Sprintf("holds an image without a full name (%s)", m.Digest), nil)
		}
		if m.Platforms, err = platformsOf(ctx, file, d); err != nil {
			return nil, bad("holds "+m.Name+", which is not whole", err)
		}
		out = append(out, m)
	}
	return out, nil
}

// nameOf is the full name of an image in a layout: containerd's own annotation
// first, as its import does.
func nameOf(d v1.Descriptor) string {
	for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
		if name := d.Annotations[key]; strings.Contains(name, "/") {
			return name
		}
	}
	return ""
}

// platformsOf finds out for which systems an image is made.
func platformsOf(ctx context.Context, file string, d v1.Descriptor) ([]v1.Platform, error) {
	m, err := manifestOf(ctx, file, d)
	if err != nil {
		return nil, err
	}
	var out []v1.Platform
	if m.IsIndex() {
		for _, child := range m.Children {
			if child.Platform != nil && child.Platform.OS != "unknown" { // attestations have no system
				out = append(out, *child.Platform)
			}
		}
		return out, nil
	}
	if len(m.Blobs) == 0 {
		return nil, errors.New("its manifest lists nothing")
	}
	raw, err := blobOf(ctx, file, m.Blobs[0])
	if err != nil {
		return nil, err
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("reading its config: %w", err)
	}
	return []v1.Platform{*config.Platform()}, nil
}

func manifestOf(ctx context.Context, file string, d v1.Descriptor) (images.Manifest, error) {
	raw, err := blobOf(ctx, file, d)
	if err != nil {
		return images.Manifest{}, err
	}
	return images.ParseManifest(raw, d.MediaType)
}

// blobOf reads a small blob and checks its digest.
func blobOf(ctx context.Context, file string, d v1.Descriptor) ([]byte, error) {
	name := pathOf(d.Digest.String())
	found, err := readDocuments(ctx, file, []string{name})
	if err != nil {
		return nil, err
	}
	raw, ok := found[name]
	if !ok {
		return nil, fmt.Errorf("there is no %s", name)
	}
	if have, _, err := v1.SHA256(strings.NewReader(string(raw))); err != nil || have != d.Digest {
		return nil, fmt.Errorf("%s has another digest", name)
	}
	return raw, nil
}

// readDocuments reads members of a tar by their names, as many as there are.
func readDocuments(ctx context.Context, file string, names []string) (map[string][]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string][]byte{}
	for t := tar.NewReader(f); len(out) < len(names); {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		name := path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || !slices.Contains(names, name) {
			continue
		}
		if h.Size > largestDocument {
			return nil, fmt.Errorf("%s is too large (%d bytes)", name, h.Size)
		}
		if out[name], err = io.ReadAll(t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

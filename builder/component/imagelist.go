package component

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// image is one image of an archive: its layers by their names there, the lowest
// first.
type image struct {
	os, arch string
	layers   []string
	plain    bool // it is no image, but a release's archive: the tar file itself holds the programs
}

// errNoImage says that an archive has nothing that an image begins with.
var errNoImage = errors.New("it has neither a manifest.json nor an index.json, so it holds no image, and it has no programs either")

// holds says whether there are programs in the archive itself.
func (a *archive) holds(known func(base string) string) bool {
	for name := range a.entries {
		if known(strings.ToLower(path.Base(name))) != "" {
			return true
		}
	}
	return false
}

// platform is what a configuration says.
type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

// descriptor refers to a document or a layer of an OCI layout.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
}

// images lists the images for windows/amd64 of an archive. None is an error.
func (a *archive) images() ([]image, error) {
	var all []image
	var err error
	_, docker := a.entries["manifest.json"]
	_, oci := a.entries["index.json"]
	switch {
	case docker:
		all, err = a.dockerImages()
	case oci:
		all, err = a.ociImages("index.json", 0)
	default:
		err = errNoImage
	}
	if err != nil {
		return nil, err
	}
	var ours []image
	var others []string
	for _, i := range all {
		if i.os == "windows" && i.arch == "amd64" {
			ours = append(ours, i)
		} else {
			others = append(others, i.os+"/"+i.arch)
		}
	}
	switch {
	case len(ours) == 0 && others == nil:
		return nil, errors.New("it holds no image")
	case len(ours) == 0:
		return nil, errors.New("it holds images for " + strings.Join(others, ", ") + ", none for windows/amd64")
	case len(ours) > maxImages:
		return nil, fmt.Errorf("it holds %d images", len(ours))
	}
	for _, i := range ours {
		if len(i.layers) > maxLayers {
			return nil, fmt.Errorf("an image has %d layers", len(i.layers))
		}
	}
	return ours, nil
}

// dockerImages reads what docker save writes.
func (a *archive) dockerImages() ([]image, error) {
	var manifests []struct {
		Config string
		Layers []string
	}
	if err := a.json("manifest.json", &manifests); err != nil {
		return nil, err
	}
	var out []image
	for _, m := range manifests {
		var p platform
		if err := a.json(m.Config, &p); err != nil {
			return nil, err
		}
		out = append(out, image{os: p.OS, arch: p.Architecture, layers: m.Layers})
	}
	return out, nil
}

// ociImages reads an index of an OCI layout, and the indexes in it.
func (a *archive) ociImages(name string, depth int) ([]image, error) {
	var index struct {
		Manifests []descriptor `json:"manifests"`
	}
	if err := a.json(name, &index); err != nil {
		return nil, err
	}
	var out []image
	for _, d := range index.Manifests {
		blob, err := blobName(d.Digest)
		if err != nil {
			return nil, err
		}
		if _, ok := a.entries[blob]; !ok {
			continue // an image of another platform that was left out
		}
		var more []image
		switch {
		case strings.HasSuffix(d.MediaType, "image.index.v1+json") || strings.HasSuffix(d.MediaType, "manifest.list.v2+json"):
			if depth == maxDepth {
				return nil, errors.New("its indexes are nested too deeply")
			}
			more, err = a.ociImages(blob, depth+1)
		default:
			more, err = a.ociImage(blob)
		}
		if err != nil {
			return nil, err
		}
		if out = append(out, more...); len(out) > 1000 {
			return nil, errors.New("it holds too many images")
		}
	}
	return out, nil
}

// ociImage reads one manifest.
func (a *archive) ociImage(name string) ([]image, error) {
	var m struct {
		Config descriptor   `json:"config"`
		Layers []descriptor `json:"layers"`
	}
	if err := a.json(name, &m); err != nil {
		return nil, err
	}
	config, err := blobName(m.Config.Digest)
	if err != nil {
		return nil, err
	}
	var p platform
	if err := a.json(config, &p); err != nil {
		return nil, err
	}
	i := image{os: p.OS, arch: p.Architecture}
	for _, l := range m.Layers {
		blob, err := blobName(l.Digest)
		if err != nil {
			return nil, err
		}
		if strings.Contains(l.MediaType, "in-toto") {
			continue
		}
		i.layers = append(i.layers, blob)
	}
	return []image{i}, nil
}

// blobName is where an OCI layout keeps what a digest names.
func blobName(digest string) (string, error) {
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(digest) {
		return "", fmt.Errorf("it has the malformed digest %q", digest[:min(len(digest), 100)])
	}
	return "blobs/sha256/" + strings.TrimPrefix(digest, "sha256:"), nil
}

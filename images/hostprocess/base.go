package hostprocess

import (
	"context"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/wbox-dev/wbox/images/layer"
)

// PublishedBase is Microsoft's own base of such images, of which Base makes the
// equivalent.
const PublishedBase = "mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0"

// licence is what the base says of itself.
const licence = "This base image holds empty registry hives and nothing else. It is in the public domain: https://creativecommons.org/publicdomain/zero/1.0/\r\n"

// Base makes the base image: the five hives that Windows looks for when it
// imports the lowest layer of an image. From Server 2025 on they must be hives;
// before, empty files did (New-HostProcessBaseImage.ps1 of Microsoft's project).
func Base(ctx context.Context, opts layer.Options) (v1.Image, error) {
	files := []layer.File{{Name: "License.txt", Data: []byte(licence)}}
	for _, name := range []string{"DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"} {
		files = append(files, layer.File{Name: "Windows/System32/config/" + name, Data: hive(opts.Created)})
	}
	l, err := layer.WindowsBase(ctx, files, opts)
	if err != nil {
		return nil, fmt.Errorf("making the base: %w", err)
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{Architecture: "amd64", OS: "windows", Created: v1.Time{Time: opts.Created.UTC()},
		RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{Cmd: []string{`c:\windows\system32\cmd.exe`}}})
	if err != nil {
		return nil, fmt.Errorf("writing the base's configuration: %w", err)
	}
	return appendLayer(img, l, "wbox: base of HostProcess containers", opts)
}

// appendLayer adds a layer and says in the history where it came from.
func appendLayer(img v1.Image, l v1.Layer, by string, opts layer.Options) (v1.Image, error) {
	img, err := mutate.Append(img, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: opts.Created.UTC()}, CreatedBy: by}})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	return img, nil
}

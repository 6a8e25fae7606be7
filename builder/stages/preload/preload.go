// Package preload is the stage that gets the container images which lie in a box
// already: an archive each, from a registry or from a file. It boots nothing; the
// layer of the runtime imports what it got. It must not import another stage.
package preload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/stage"
)

// Name is the stage's id, Output its only output: a folder of archives.
const (
	Name   = "images"
	Output = "archives"
)

// Image is one image, pinned.
type Image struct {
	Name   string `json:"name"`   // under which kubelet asks for it, with its registry and tag
	Digest string `json:"digest"` // "sha256:…" of the manifest that this name will stand for in the box
	File   string `json:"file"`   // its archive below the folder
}

// Archive is a file with images.
type Archive struct {
	Images []Image // Required: what it holds, all with the same File
	// Get writes the archive to a path that does not exist yet and returns the
	// digests of what it wrote, by name.
	Get func(ctx context.Context, w *stage.Work, path string) (map[string]string, error)
}

// Stage gets the archives.
type Stage struct{ archives []Archive }

// New makes the stage.
func New(archives []Archive) *Stage { return &Stage{archives} }

// Images lists what all archives hold, in their order.
func Images(archives []Archive) []Image {
	out := []Image{} // never nil: it is a list for PowerShell
	for _, a := range archives {
		out = append(out, a.Images...)
	}
	return out
}

// Name returns the stage's id.
func (s *Stage) Name() string { return Name }

// Title returns a phrase for people.
func (s *Stage) Title() string {
	if n := len(Images(s.archives)); n != 1 {
		return fmt.Sprintf("getting %d container images", n)
	}
	return "getting a container image"
}

// Inputs is empty: every image is named by its digest in the fingerprint.
func (s *Stage) Inputs() []stage.Input { return nil }

// Outputs lists the folder of archives.
func (s *Stage) Outputs() []stage.Output {
	return []stage.Output{{Name: Output, Kind: stage.Tree, Deterministic: true}}
}

// Fingerprint lists the images.
func (s *Stage) Fingerprint() stage.Fingerprint {
	return stage.Fingerprint{Version: 1, Params: Images(s.archives)}
}

// Run gets the archives. One that holds something else than was pinned is an
// error.
func (s *Stage) Run(ctx context.Context, w *stage.Work) error {
	out := w.Out(Output)
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	for _, a := range s.archives {
		file := a.Images[0].File
		got, err := a.Get(ctx, w, filepath.Join(out, file))
		if err != nil {
			return fmt.Errorf("getting %s: %w", a.Images[0].Name, err)
		}
		for _, i := range a.Images {
			if i.File != file || got[i.Name] != i.Digest {
				return fmt.Errorf("%s became %q, want %s", i.Name, got[i.Name], i.Digest)
			}
		}
	}
	w.Fact("images", Images(s.archives))
	return nil
}

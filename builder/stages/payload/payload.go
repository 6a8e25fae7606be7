// Package payload is the stage that puts the Kubernetes binaries into the box:
// onto the WBOX partition of an overlay, without a boot. It must not import
// another stage.
package payload

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/disk"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Name is the stage's id.
const Name = "payload"

// Names of its inputs and its output.
const (
	BitsInput  = "bits"
	DiskOutput = "disk"
)

// Stage writes the payload.
type Stage struct {
	bits, parent stage.Input
	disk         *disk.Tool
}

// New makes the stage: bits is the folder of .exe files, parent the sealed disk.
func New(bits, parent stage.Input, tool *disk.Tool) *Stage {
	bits.Name, parent.Name = BitsInput, DiskOutput
	return &Stage{bits, parent, tool}
}

// Name returns the stage's id.
func (s *Stage) Name() string { return Name }

// Title returns a phrase for people.
func (s *Stage) Title() string { return "putting Kubernetes into the box" }

// Inputs lists the binaries and the sealed disk.
func (s *Stage) Inputs() []stage.Input { return []stage.Input{s.bits, s.parent} }

// Outputs lists the disk.
func (s *Stage) Outputs() []stage.Output { return []stage.Output{{Name: DiskOutput, Kind: stage.Disk}} }

// Fingerprint is the stage's own version: its inputs say the rest.
func (s *Stage) Fingerprint() stage.Fingerprint { return stage.Fingerprint{Version: 1} }

// Run writes the payload and reads it back.
func (s *Stage) Run(ctx context.Context, w *stage.Work) error {
	files, err := Files(ctx, w.In(BitsInput))
	if err != nil {
		return err
	}
	if err := s.disk.CreateOverlay(ctx, w.In(DiskOutput), w.Out(DiskOutput)); err != nil {
		return err
	}
	w.Fact("files", files)
	return s.disk.WritePayload(ctx, w.Out(DiskOutput), files, w.Scratch)
}

// Files describes the .exe files in a folder, sorted by name.
func Files(ctx context.Context, dir string) ([]disk.PayloadFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []disk.PayloadFile
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".exe") {
			continue
		}
		p := filepath.Join(dir, e.Name())
		digest, size, err := cas.DigestFile(ctx, p)
		if err != nil {
			return nil, err
		}
		out = append(out, disk.PayloadFile{Name: e.Name(), Path: p, SHA256: strings.TrimPrefix(digest, "sha256:"), Size: size})
	}
	return out, nil
}

// Package kubebits is the stage that gets the Kubernetes binaries of one ref:
// compiled, or taken from a folder. It boots nothing, and the same bytes cause
// no further work whatever they came from. It must not import another stage.
package kubebits

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Name is the stage's id, Output its only output: a folder of .exe files.
const (
	Name   = "kube"
	Output = "bits"
)

// Stage gets the binaries.
type Stage struct {
	source kube.Source
	ref    kube.Ref
}

// New makes the stage for a ref that source has resolved.
func New(source kube.Source, ref kube.Ref) *Stage { return &Stage{source, ref} }

// Name returns the stage's id.
func (s *Stage) Name() string { return Name }

// Title returns a phrase for people.
func (s *Stage) Title() string {
	if s.ref.Toolchain != "" {
		return "compiling Kubernetes " + s.ref.Version
	}
	return "checking the binaries of Kubernetes " + s.ref.Version
}

// Inputs is empty: the ref names everything by digest, and is in the fingerprint.
func (s *Stage) Inputs() []stage.Input { return nil }

// Outputs lists the folder of .exe files.
func (s *Stage) Outputs() []stage.Output {
	return []stage.Output{{Name: Output, Kind: stage.Tree, Deterministic: true}}
}

// Fingerprint is the ref.
func (s *Stage) Fingerprint() stage.Fingerprint { return stage.Fingerprint{Version: 1, Params: s.ref} }

// Run gets the binaries and records what they are.
func (s *Stage) Run(ctx context.Context, w *stage.Work) error {
	out := w.Out(Output)
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	scratch := filepath.Join(w.RunDir, "compile") // kept: the compiler's log is in it
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return err
	}
	bits, err := s.source.Fetch(ctx, s.ref, out, scratch, w.Sink)
	if err != nil {
		return err
	}
	if len(bits.Binaries) != len(kube.Programs()) {
		return fmt.Errorf("got %d programs, want %d", len(bits.Binaries), len(kube.Programs()))
	}
	w.Fact("bits", bits)
	return nil
}

// Package componentbits is the stage that gets the programs of a CNI or of the
// container runtime: compiled, or taken from a folder or an image. It boots
// nothing, and the same bytes cause no further work whatever they came from. It
// must not import another stage.
package componentbits

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/stage"
)

// The ids of the stages that are made here, and their only output: a folder of
// .exe files.
const (
	CNI     = "cni-bits"
	Runtime = "runtime-bits"
	Output  = "bits"
)

// Stage gets the programs.
type Stage struct {
	name, project string
	source        component.Source
	ref           component.Ref
}

// New makes the stage called name (CNI or Runtime) for a ref of a project that
// source has resolved.
func New(name, project string, source component.Source, ref component.Ref) *Stage {
	return &Stage{name, project, source, ref}
}

// Name returns the stage's id.
func (s *Stage) Name() string { return s.name }

// Title returns a phrase for people.
func (s *Stage) Title() string {
	if s.ref.Toolchain != "" {
		return "compiling " + s.project + " " + s.ref.Version
	}
	return "checking the programs of " + s.project
}

// Inputs is empty: the ref names everything by digest, and is in the fingerprint.
func (s *Stage) Inputs() []stage.Input { return nil }

// Outputs lists the folder of .exe files.
func (s *Stage) Outputs() []stage.Output {
	return []stage.Output{{Name: Output, Kind: stage.Tree, Deterministic: true}}
}

// params are what decides the bytes.
type params struct {
	Project string        `json:"project"`
	Ref     component.Ref `json:"ref"`
}

// Fingerprint is the ref.
func (s *Stage) Fingerprint() stage.Fingerprint {
	return stage.Fingerprint{Version: 1, Params: params{s.project, s.ref}}
}

// Run gets the programs and records what they are.
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
	if len(bits.Binaries) == 0 {
		return errors.New("there are no programs")
	}
	w.Fact("bits", bits)
	return nil
}

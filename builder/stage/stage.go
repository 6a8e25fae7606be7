// Package stage is the contract between the engine and the steps of a build.
//
// All inputs of a stage are explicit: another stage's output, content named by
// its digest, or a static parameter in its fingerprint; nothing else may change
// a result. Memory, processors, accelerator, timeouts, paths, host names and
// modification times never enter a key. It is a leaf: it imports only report.
package stage

import (
	"context"
	"fmt"

	"github.com/wbox-dev/wbox/builder/report"
)

// Kind says what an output is made of.
type Kind string

// The kinds of outputs.
const (
	File   Kind = "file"   // one file
	Tree   Kind = "tree"   // a folder of regular files
	Disk   Kind = "disk"   // a qcow2 image, possibly an overlay of the disk input of the same stage
	Secret Kind = "secret" // one file, mode 0600, whose content is in no key and no log
)

// Output is something that a stage makes.
type Output struct {
	Name string
	Kind Kind
	// Deterministic outputs feed their content digest to the stages that use
	// them, so the same bytes cause no further work. The others (a disk:
	// Windows setup is not bit-reproducible; a secret) feed their producer's key.
	Deterministic bool
}

// Input is something that a stage uses: an output of another stage, or
// content that is named by its digest. Exactly one of the two is set.
type Input struct {
	Name   string
	From   string // the producing stage's name
	Output string // which output of it

	Digest string // "sha256:…" of locked content
	Path   string // where that content lies; not in the key
}

// FromStage returns an Input that is another stage's output.
func FromStage(name, from, output string) Input {
	return Input{Name: name, From: from, Output: output}
}

// Locked returns an Input that is content named by its digest, lying at path.
func Locked(name, digest, path string) Input {
	return Input{Name: name, Digest: digest, Path: path}
}

// Fingerprint is everything beside the inputs that changes a stage's result.
type Fingerprint struct {
	Version int               `json:"version"`          // of the stage's own code; raise it when what it makes changes
	Params  any               `json:"params,omitempty"` // static parameters, marshalled as JSON
	Files   map[string]string `json:"files,omitempty"`  // embedded scripts and templates: name -> digest
}

// Stage is one step of a build. Its errors don't mention its own name: the
// engine adds the title.
type Stage interface {
	// Name is the stable id, part of the key.
	Name() string
	// Title is a phrase for people, such as "installing Windows".
	Title() string
	// Inputs lists everything it uses. It does not change during a build.
	Inputs() []Input
	// Fingerprint lists everything else that changes its result.
	Fingerprint() Fingerprint
	// Outputs lists what it makes.
	Outputs() []Output
	// Run makes all outputs at the places that Work names, or returns an
	// error. It returns soon after ctx ends and leaves nothing running.
	Run(ctx context.Context, w *Work) error
}

// Resources is what a stage takes from the host while it runs. Never in a key.
type Resources struct {
	VM bool // it runs a virtual machine; one runs at a time
}

// Needer is implemented by stages that need resources.
type Needer interface {
	Needs() Resources
}

// PassThrough is implemented by stages that may have nothing to do: then they
// don't run, and each output is the input of the same name.
type PassThrough interface {
	// PassThrough returns why there is nothing to do, or "" if there is.
	PassThrough() string
}

// Volatile is implemented by stages whose results must not be reused.
type Volatile interface {
	// Volatile returns the reason, or "" if results may be reused.
	Volatile() string
}

// Work is what a running stage may touch.
type Work struct {
	Sink    report.Sink // events, already labelled with the stage
	Scratch string      // an empty folder, gone after Run
	RunDir  string      // kept: transcripts, serial log, screenshots

	in, out map[string]string
	facts   map[string]any
}

// NewWork makes a Work; in and out map the names of inputs and outputs to
// absolute paths.
func NewWork(in, out map[string]string, scratch, runDir string, sink report.Sink) *Work {
	return &Work{Sink: sink, Scratch: scratch, RunDir: runDir, in: in, out: out, facts: map[string]any{}}
}

// In returns the path of an input. It panics for a name that Inputs doesn't
// list, which is a programmer's error.
func (w *Work) In(name string) string { return must(w.in, "input", name) }

// Out returns the path at which Run must make an output. It panics for a name
// that Outputs doesn't list, which is a programmer's error.
func (w *Work) Out(name string) string { return must(w.out, "output", name) }

func must(m map[string]string, what, name string) string {
	p, ok := m[name]
	if !ok {
		panic(fmt.Sprintf("stage: no %s %q", what, name))
	}
	return p
}

// Fact records something about the result for its manifest, such as a digest
// or what was proven. The value is marshalled as JSON. Never a secret.
func (w *Work) Fact(name string, value any) { w.facts[name] = value }

// Facts returns what Fact recorded.
func (w *Work) Facts() map[string]any { return w.facts }

// Progress reports what the stage does right now.
func (w *Work) Progress(format string, args ...any) {
	w.Sink.Emit(report.Event{Kind: report.StageProgress, Message: fmt.Sprintf(format, args...)})
}

// Package kube turns what a user asks for with --k8s into Windows binaries:
// a Source resolves it to a Ref and gets its Bits. Each source is a file of
// its own; Parse has the one table that chooses. What can't be had or is refused
// (no such version, no Kubernetes in that folder, a file that is no kubelet.exe)
// is a *fault.Problem of class fault.Input. The package must not import spec,
// stage or a stage.
package kube

import (
	"context"

	"github.com/wbox-dev/wbox/builder/report"
)

// Names of the Windows programs that a box holds, without ".exe".
const (
	Kubelet       = "kubelet"
	KubeProxy     = "kube-proxy"
	Kubeadm       = "kubeadm"
	KubeLogRunner = "kube-log-runner"
)

// Programs returns the names of all programs that a box holds, sorted.
func Programs() []string { return []string{KubeLogRunner, KubeProxy, Kubeadm, Kubelet} }

// Ref is a resolved request: everything that decides which bytes come out.
// It is JSON in keys, locks and manifests.
type Ref struct {
	Source    string            `json:"source"`               // "module", "dir", "git", "checkout", "release", "ci" or "url"
	Version   string            `json:"version"`              // as --version prints it, such as "v1.37.2"
	Commit    string            `json:"commit,omitempty"`     // full hex, empty where unknown
	BuildDate string            `json:"build_date,omitempty"` // RFC 3339 in UTC, empty where unknown
	TreeState string            `json:"tree_state,omitempty"` // clean, dirty or archive
	Toolchain string            `json:"toolchain,omitempty"`  // "go1.26.8", for compiled sources
	Base      *Ref              `json:"base,omitempty"`       // what fills in the programs that a folder lacks
	Inputs    map[string]string `json:"inputs"`               // what was resolved: name -> digest ("sha256:…" or a module's "h1:…")
}

// Binary is one program of Bits.
type Binary struct {
	Name   string `json:"name"`   // such as "kubelet"
	File   string `json:"file"`   // base name, such as "kubelet.exe", or "kubelet" for Linux
	SHA256 string `json:"sha256"` // hex
	Size   int64  `json:"size"`   // bytes
	From   string `json:"from"`   // where it came from, for people
}

// Bits are the binaries of one Ref, lying in one folder.
type Bits struct {
	Ref      Ref      `json:"ref"`
	Binaries []Binary `json:"binaries"` // sorted by file name
}

// Source gets Kubernetes from one kind of place.
type Source interface {
	// Resolve turns the request into a Ref. It is quick, writes nothing the
	// user could see, and is the only step that may turn a name into a digest.
	// Warnings and hints go to the sink.
	Resolve(ctx context.Context, sink report.Sink) (Ref, error)
	// Fetch puts the ref's binaries into dir, an empty folder, each verified.
	// What it needs while it works (a go.mod of its own, say) it keeps in
	// scratch, another empty folder.
	Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error)
}

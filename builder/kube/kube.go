// Package kube turns what a user asks for with --k8s into Windows binaries:
// a Source resolves it to a Ref and gets its Bits. Each source is a file of
// its own; Parse has the one table that chooses. What can't be had or is refused
// (no such version, no Kubernetes in that folder, a file that is no kubelet.exe)
// is a *fault.Problem of class fault.Input. The package must not import spec,
// stage or a stage.
package kube

import "github.com/wbox-dev/wbox/builder/internal/gosource"

// Names of the Windows programs that a box holds, without ".exe".
const (
	Kubelet       = "kubelet"
	KubeProxy     = "kube-proxy"
	Kubeadm       = "kubeadm"
	KubeLogRunner = "kube-log-runner"
)

// Programs returns the names of all programs that a box holds, sorted.
func Programs() []string { return []string{KubeLogRunner, KubeProxy, Kubeadm, Kubelet} }

// What a Source deals in; the types are those of every source of Go programs.
type (
	Ref    = gosource.Ref    // a resolved request
	Binary = gosource.Binary // one program of Bits
	Bits   = gosource.Bits   // the binaries of one Ref, lying in one folder
	Source = gosource.Source // gets Kubernetes from one kind of place
)

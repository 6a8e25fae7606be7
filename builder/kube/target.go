package kube

import (
	"cmp"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
)

// Kubectl is built for Linux only: a control plane wants it, a Windows node doesn't.
const Kubectl = "kubectl"

// LinuxPrograms returns the names of the programs that come for linux/amd64
// where they are asked for, sorted: what a control plane and a Linux node need.
func LinuxPrograms() []string { return []string{Kubeadm, Kubectl, Kubelet} }

// ControlPlanePrograms returns the names of the programs that the images of a
// control plane hold, sorted; kube-log-runner starts the others.
func ControlPlanePrograms() []string {
	return []string{"kube-apiserver", "kube-controller-manager", KubeLogRunner, KubeProxy, "kube-scheduler"}
}

// The systems that programs are built for.
const (
	windows = gosource.Windows
	linux   = gosource.Linux
)

// target is one program for one system.
type target struct {
	program, goos string
	goarch        string // empty: amd64
}

func (t target) arch() string { return cmp.Or(t.goarch, "amd64") }

// file is the name of the target's file.
func (t target) file() string { return gosource.FileOf(t.program, t.goos) }

// targets lists what is asked for: the Windows programs, and those for Linux
// where asked for; or those of a control plane's images alone.
func (o Options) targets(programs []string) []target {
	var out []target
	if o.ControlPlane != "" {
		for _, p := range ControlPlanePrograms() {
			out = append(out, target{program: p, goos: linux, goarch: o.ControlPlane})
		}
		return out
	}
	for _, p := range programs {
		out = append(out, target{program: p, goos: windows})
	}
	if o.Linux {
		for _, p := range LinuxPrograms() {
			out = append(out, target{program: p, goos: linux})
		}
	}
	return out
}

// programsOf are targets as they are compiled.
func programsOf(targets []target) []gosource.Program {
	var out []gosource.Program
	for _, t := range targets {
		out = append(out, gosource.Program{Name: t.program, Package: packageOf(t.program), GOOS: t.goos, GOARCH: t.goarch})
	}
	return out
}

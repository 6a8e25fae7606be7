package kube

import "github.com/wbox-dev/wbox/builder/internal/gosource"

// Kubectl is built for Linux only: a control plane wants it, a Windows node doesn't.
const Kubectl = "kubectl"

// LinuxPrograms returns the names of the programs that come for linux/amd64
// where they are asked for, sorted: what a control plane and a Linux node need.
func LinuxPrograms() []string { return []string{Kubeadm, Kubectl, Kubelet} }

// The systems that programs are built for, all of them on amd64.
const (
	windows = gosource.Windows
	linux   = gosource.Linux
)

// target is one program for one system.
type target struct{ program, goos string }

// file is the name of the target's file.
func (t target) file() string { return gosource.FileOf(t.program, t.goos) }

// targetsOf lists the Windows programs, and those for Linux where asked for.
func targetsOf(programs []string, withLinux bool) []target {
	var out []target
	for _, p := range programs {
		out = append(out, target{p, windows})
	}
	if withLinux {
		for _, p := range LinuxPrograms() {
			out = append(out, target{p, linux})
		}
	}
	return out
}

// programsOf are targets as they are compiled.
func programsOf(targets []target) []gosource.Program {
	var out []gosource.Program
	for _, t := range targets {
		out = append(out, gosource.Program{Name: t.program, Package: packageOf(t.program), GOOS: t.goos})
	}
	return out
}

package kube

// Kubectl is built for Linux only: a control plane wants it, a Windows node doesn't.
const Kubectl = "kubectl"

// LinuxPrograms returns the names of the programs that come for linux/amd64
// where they are asked for, sorted: what a control plane and a Linux node need.
func LinuxPrograms() []string { return []string{Kubeadm, Kubectl, Kubelet} }

// The systems that programs are built for, all of them on amd64.
const (
	windows = "windows"
	linux   = "linux"
)

// target is one program for one system.
type target struct{ program, goos string }

// file is the name of the target's file.
func (t target) file() string {
	if t.goos == linux {
		return t.program
	}
	return t.program + ".exe"
}

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

// packagesFor returns the import paths of those targets that are for one system.
func packagesFor(targets []target, goos string) []string {
	var out []string
	for _, t := range targets {
		if t.goos == goos {
			out = append(out, packageOf(t.program))
		}
	}
	return out
}

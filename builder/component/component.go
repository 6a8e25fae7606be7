// Package component turns what a user asks for with --cni and --containerd into
// Windows programs, in the way and by the mechanism (builder/internal/gosource)
// that package kube does it for --k8s: any ref of any repository, a checkout, a
// module, a folder of programs or a container image in a tar file. ParseCNI and
// ParseContainerd have the tables that choose; what differs between projects is
// in a file of each. What can't be had or is refused is a *fault.Problem of class
// fault.Input. The package must not import spec, stage or a stage.
package component

import (
	"time"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
)

// What a Source deals in; the types are those of every source of Go programs.
type (
	Ref    = gosource.Ref    // a resolved request
	Bits   = gosource.Bits   // the programs of one Ref, lying in one folder
	Source = gosource.Source // gets the programs of one project
)

// Names of the projects. None is what --cni means by no CNI at all.
const (
	None       = "none"
	Antrea     = "antrea"
	Calico     = "calico"
	Flannel    = "flannel"
	Containerd = "containerd"
)

// CNIs returns what may be named with --cni.
func CNIs() []string { return []string{None, Calico, Antrea, Flannel} }

// Options are the settings that come with a request.
type Options struct {
	CacheDir   string            // a folder of ours that outlives the run: the git mirror is in it, shared with Kubernetes
	Go         string            // the go command; empty: the one in PATH
	Env        []string          // more environment for git and the go command, "KEY=value"
	GitURLs    map[string]string // the repository of refs that name none, by project; default: GitURL(project)
	RetryPause time.Duration     // the wait before a server is asked again; doubled each time; default 1 s
	Offline    bool              // the network must not be used: what is not on this machine is a Problem of class fault.Network that names it
	Parallel   int               // packages compiled at once; 0: as many as the go command thinks right
}

// settings are what gosource has to know of a request.
func (o Options) settings(p *project) gosource.Settings {
	return gosource.Settings{Field: p.flag, What: p.title, Describe: p.describe, CacheDir: o.CacheDir, Go: o.Go, Env: o.Env,
		RetryPause: o.RetryPause, Offline: o.Offline, Parallel: o.Parallel}
}

// GitURL is the repository in which refs of a project are looked for where the
// request and Options.GitURLs name none; empty for what isn't compiled.
func GitURL(name string) string {
	if p := projectOf(name); p != nil {
		return p.gitURL
	}
	return ""
}

// gitURL is the repository of refs that name none.
func (o Options) gitURL(p *project) string {
	if u := o.GitURLs[p.name]; u != "" {
		return u
	}
	return p.gitURL
}

// Package gosource compiles Go programs for Windows from source that lies
// anywhere: any ref of any git repository, through one shared mirror; a
// checkout, with whatever the user changed in it; or a module of the module
// proxy. It pins what decides the bytes, calls the go command once for all
// programs of a project, explains what goes wrong and checks what comes out.
// What a project's programs are and how they are stamped is told by its
// callers, one of which is builder/kube. What the user can mend is a
// *fault.Problem about the field of its Settings. The package must not import a
// capability, spec, stage or a stage.
package gosource

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/report"
)

// Settings come with a request.
type Settings struct {
	Field      string        // Required: the flag that all problems are about, such as "--k8s"
	What       string        // Required: the project for people, such as "Kubernetes"
	Describe   []string      // arguments of git describe beside the commit; nil: tags don't matter
	CacheDir   string        // a folder that outlives the run; the git mirror is in it
	Go         string        // the go command; empty: the one in PATH
	Env        []string      // more environment for git and the go command, "KEY=value"
	RetryPause time.Duration // the wait before a server is asked again; doubled each time; default 1 s
	Offline    bool          // the network must not be used: what is not on this machine is a Problem of class fault.Network
	Parallel   int           // packages compiled at once; 0: as many as the go command thinks right
	Anew       bool          // take nothing from an earlier compile, and compile no tree where it lies: for a comparison
}

// Getenv reads a variable of the environment, one of Env first.
func (s Settings) Getenv(name string) string {
	for _, kv := range slices.Backward(s.Env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return os.Getenv(name)
}

// Ref is a resolved request: everything that decides which bytes come out.
// It is JSON in keys, locks and manifests.
type Ref struct {
	Source    string            `json:"source"`               // "module", "dir", "git", "checkout", "release", "ci", "url" or "image"
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

// SortBinaries sorts by file name.
func SortBinaries(bins []Binary) {
	slices.SortFunc(bins, func(a, b Binary) int { return strings.Compare(a.File, b.File) })
}

// Source gets the programs of one project from one kind of place.
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

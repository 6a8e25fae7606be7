package kube

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
)

// field is the flag that all problems of a source are about.
const field = "--k8s"

// Options are the settings that come with a request.
type Options struct {
	Base         string            // --k8s-base: a release whose binaries fill what a folder lacks
	Version      string            // --k8s-version: what the binaries in a folder are, where they don't say it
	CacheDir     string            // a folder of ours that outlives the run (wine's files); empty: wine isn't used
	Go           string            // the go command; empty: the one in PATH
	Env          []string          // more environment for the go command, "KEY=value", such as "GOPROXY=off"
	GitURL       string            // the repository of refs that name none; default DefaultGitURL
	BaseURL      string            // where releases and CI builds are published; default DefaultBaseURL
	Transport    http.RoundTripper // what downloads go through; nil: the environment's proxy
	RetryPause   time.Duration     // the wait before a server is asked again; doubled each time; default 1 s
	Prefer       string            // Prebuilt: take a plain release as it was published; default: compile it
	Linux        bool              // also kubelet, kubeadm and kubectl for linux/amd64, of the same ref
	ControlPlane string            // "amd64" or "arm64": instead of all others, the programs of a control plane's images, for linux on that processor
	Debug        bool              // compile without optimisation and with symbols, as the official DBG=1 does
	Offline      bool              // the network must not be used: what is not on this machine is a Problem of class fault.Network that names it
	Parallel     int               // packages compiled at once; 0: as many as the go command thinks right
	anew         bool              // take nothing from an earlier compile, and compile no tree where it lies: for a comparison
}

// accepted lists what --k8s takes; it ends every refusal of something that is
// nothing of it.
const accepted = "give a release (v1.37.2, 1.37, stable), a CI build (ci/latest), a git ref (master, pull/12345, a commit, git:REPOSITORY@REF), " +
	"a URL, or a folder with kubelet.exe or a source tree (./bin)"

// folderForm is the name of the form that is a path.
const folderForm = "a folder"

// form is one way to say where Kubernetes comes from.
type form struct {
	name    string
	matches func(text string) bool
	// source makes the Source, or says why what looks like it is refused.
	source func(text string, opts Options) (Source, error)
}

// forms is the table that chooses, first match first. What looks like a path
// comes after the names that contain a slash, so a folder of such a name needs
// "./" before it.
func forms() []form {
	match := func(re string) func(string) bool { return regexp.MustCompile(re).MatchString }
	refuse := func(why, fix string) func(string, Options) (Source, error) {
		return func(text string, _ Options) (Source, error) { return nil, versionProblem(field, text, why, fix) }
	}
	return []form{
		{"a git ref", match(`^git:`), complete(newGitURL)},
		{"a git URL", match(`^(ssh|git|git\+ssh)://|^https?://.*\.git(@.*)?$`), refuse("is a git repository, of which no ref is named", "write it as git:REPOSITORY@REF")},
		{"a URL", match(`^[A-Za-z][A-Za-z0-9+.-]*://`), newURL},
		{"a fast CI build", match(`^ci/(latest-fast|fast/.*)$`), refuse("has no Windows binaries: the fast build is for linux/amd64 alone", "use ci/latest")},
		{"a retired CI marker", match(`^ci/k8s-`), refuse("is a marker that is no longer moved", "use ci/latest, or ci/latest-1.37 for a release branch")},
		{"a cross build", match(`^ci-cross(/.*)?$`), refuse("is no longer published", "use ci/latest, which has all platforms")},
		{"a stable CI build", match(`^ci/stable`), refuse("does not exist: only releases are stable", "use stable, or ci/latest")},
		{"a CI build", match(`^ci/`), whole(newCI)},
		{"a pull request", match(`^pull/`), complete(newPull)},
		{"a prebuilt release", match(`^release/`), whole(newPrebuilt)},
		{"a release marker", match(`^(stable|latest)(-1(\.\d+)?)?$`), whole(newMarker)},
		{"a minor version", match(`^v?1\.\d+$`), whole(newMinor)},
		{"a release", match(`^v?\d+\.\d+\.\d+`), whole(newRelease)},
		{"a branch", match(`^(master|main|release-1\.\d+)$`), complete(newGitRef)},
		{"a commit", match(`^[0-9a-f]{7,40}$`), complete(newGitRef)},
		{folderForm, looksLikePath, newDir},
	}
}

// complete refuses the base of a source that lacks no program: ignored, it would
// be believed to work.
func complete(source func(string, Options) (Source, error)) func(string, Options) (Source, error) {
	return func(text string, opts Options) (Source, error) {
		if opts.Base != "" {
			return nil, &fault.Problem{Class: fault.Usage, Field: "--k8s-base", Value: opts.Base, Why: "is for a folder that lacks programs; " + text + " lacks none", Fix: "leave it out"}
		}
		return source(text, opts)
	}
}

// whole is complete, and refuses the version of a source that knows its own.
func whole(source func(string, Options) (Source, error)) func(string, Options) (Source, error) {
	return complete(func(text string, opts Options) (Source, error) {
		if opts.Version != "" {
			return nil, &fault.Problem{Class: fault.Usage, Field: "--k8s-version", Value: opts.Version, Why: "is for binaries that don't say their version; " + text + " does", Fix: "leave it out"}
		}
		return source(text, opts)
	})
}

// Parse returns the Source that text asks for, see the table. It reads no more
// than what a folder holds. What can't be meant is a *fault.Problem, of class
// fault.Usage for an empty text and of class fault.Input otherwise, that names
// what is accepted.
func Parse(text string, opts Options) (Source, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, &fault.Problem{Class: fault.Usage, Field: field, Why: "is empty", Fix: accepted}
	}
	for _, f := range forms() {
		if !f.matches(text) {
			continue
		}
		src, err := f.source(text, opts)
		if err != nil {
			return nil, err
		}
		return src, nil
	}
	return nil, versionProblem(field, text, "is neither a version nor a folder that exists", accepted)
}

// newPull returns the source of a pull request of Kubernetes' own repository.
func newPull(text string, opts Options) (Source, error) {
	if !regexp.MustCompile(`^pull/[1-9]\d*(/head|/merge)?$`).MatchString(text) {
		return nil, versionProblem(field, text, "names no pull request", "write pull/12345, or pull/12345/merge for its merge into the branch")
	}
	return newGitRef(text, opts)
}

// newRelease returns the source of a release: compiled from its module, or as
// it was published.
func newRelease(text string, opts Options) (Source, error) {
	m, err := parseModule(field, text, opts)
	if err != nil {
		return nil, err
	}
	if opts.Prefer == Prebuilt {
		return &bucketSource{text: text, kind: release, version: m.version, opts: opts}, prebuiltOnly(text, opts)
	}
	return m, nil
}

// looksLikePath says whether text can only be meant as a path, or is one.
func looksLikePath(text string) bool {
	if text == "." || text == ".." || strings.ContainsAny(text, `/\`) {
		return true
	}
	_, err := os.Stat(text)
	return err == nil
}

// parseModule returns the source of the release that a flag names.
func parseModule(flag, text string, opts Options) (*moduleSource, error) {
	v, err := normalizeVersion(text, false)
	if err != nil {
		return nil, &fault.Problem{Class: fault.Input, Field: flag, Value: text, Why: "is no release", Err: err, Fix: accepted}
	}
	switch {
	case semver.Major(v) != "v1":
		return nil, versionProblem(flag, v, "does not exist: all releases of Kubernetes begin with v1", "give one such as v1.37.2")
	case semver.Compare(v, oldestVersion) < 0:
		return nil, versionProblem(flag, v, "is older than "+oldestVersion+", the oldest that can be compiled", "give a newer one, or a folder with its binaries")
	}
	return &moduleSource{flag: flag, version: v, programs: Programs(), opts: opts}, nil
}

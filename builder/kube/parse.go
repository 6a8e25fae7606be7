package kube

import (
	"os"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
)

// field is the flag that all problems of a source are about.
const field = "--k8s"

// Options are the settings that come with a request.
type Options struct {
	Base     string   // --k8s-base: a release whose binaries fill what a folder lacks
	Version  string   // --k8s-version: what the binaries in a folder are, where they don't say it
	CacheDir string   // a folder of ours that outlives the run (wine's files); empty: wine isn't used
	Go       string   // the go command; empty: the one in PATH
	Env      []string // more environment for the go command, "KEY=value", such as "GOPROXY=off"
	Linux    bool     // also kubelet, kubeadm and kubectl for linux/amd64, of the same ref
	Debug    bool     // compile without optimisation and with symbols, as the official DBG=1 does
	Parallel int      // packages compiled at once; 0: as many as the go command thinks right
}

// accepted lists what --k8s takes today; it ends every refusal.
const accepted = "give a release (v1.37.2) or a folder with kubelet.exe (./bin)"

// folderForm is the name of the form that is a path.
const folderForm = "a folder"

// form is one way to say where Kubernetes comes from.
type form struct {
	name    string
	matches func(text string) bool
	// source makes the Source; nil: known, but not supported yet.
	source func(text string, opts Options) (Source, error)
}

// forms is the table that chooses, first match first. What looks like a path
// comes after the names that contain a slash, so a folder of such a name needs
// "./" before it.
func forms() []form {
	match := func(re string) func(string) bool { return regexp.MustCompile(re).MatchString }
	return []form{
		{name: "a URL", matches: match(`^[A-Za-z][A-Za-z0-9+.-]*://`)},
		{name: "a git ref", matches: match(`^git:|^(master|main|release-\d+\.\d+)$|^[0-9a-f]{7,40}$`)},
		{name: "a pull request", matches: match(`^pull/\d+`)},
		{name: "a CI build", matches: match(`^(ci|ci-cross)/`)},
		{name: "a release marker", matches: match(`^(release/.*|(stable|latest)(-\d+(\.\d+)?)?)$`)},
		{name: "a minor version", matches: match(`^v?\d+\.\d+$`)},
		{name: "a release", matches: match(`^v?\d+\.\d+\.\d+`), source: newModule},
		{name: folderForm, matches: looksLikePath, source: newDir},
	}
}

// Parse returns the Source that text asks for: a release such as "v1.37.2" or
// "1.37.2", or the path of a folder with Windows binaries. It reads no more
// than whether such a folder exists. Everything else is a *fault.Problem, of
// class fault.Usage for an empty text and of class fault.Input otherwise, that
// names what is accepted.
func Parse(text string, opts Options) (Source, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, &fault.Problem{Class: fault.Usage, Field: field, Why: "is empty", Fix: accepted}
	}
	for _, f := range forms() {
		switch {
		case !f.matches(text):
		case f.source == nil:
			return nil, versionProblem(field, text, "looks like "+f.name+", which is not supported yet", accepted)
		default:
			return f.source(text, opts)
		}
	}
	return nil, versionProblem(field, text, "is neither a version nor a folder that exists", accepted)
}

// looksLikePath says whether text can only be meant as a path, or is one.
func looksLikePath(text string) bool {
	if text == "." || text == ".." || strings.ContainsAny(text, `/\`) {
		return true
	}
	_, err := os.Stat(text)
	return err == nil
}

// newModule returns the source of a release.
func newModule(text string, opts Options) (Source, error) {
	m, err := parseModule(field, text, opts)
	if err != nil {
		return nil, err
	}
	return m, nil
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

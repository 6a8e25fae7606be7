package component

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
)

// The flags of the two arguments.
const (
	cniFlag        = "--cni"
	containerdFlag = "--containerd"
)

// Form is the way in which a request says where programs come from.
type Form string

// The forms. Bare is a CNI that is only prepared for: its programs come with a
// DaemonSet, at join time.
const (
	Bare   Form = "bare"
	Git    Form = "git"
	Module Form = "module"
	Path   Form = "path"
)

// Request is what the text of --cni or --containerd asks for: one typed value.
type Request struct {
	Project string // one of the names above
	Form    Form
	Remote  string // Git: the repository; empty: the project's own
	Ref     string // Git
	Version string // Module: such as "v2.3.4"
	Path    string // Path: a checkout, a folder of programs, or the tar file of an image
	Text    string // as the user wrote it, without passwords
}

const (
	acceptedCNI = "use one of none, calico, antrea, flannel; with a source calico@REF, antrea@REF, antrea@git:REPOSITORY@REF, " +
		"or NAME@PATH (./checkout, ./folder-of-programs, ./release.tar.gz, ./image.tar)"
	acceptedContainerd = "give a release (2.3.4), a git ref (main, release/2.3, pull/12345, a commit, git:REPOSITORY@REF), " +
		"or a source tree, a folder with containerd.exe, a release's archive or the tar file of an image (./bin)"
)

// ParseCNI reads the text of --cni. A path without a name before it is looked
// at to find out whose it is. What can't be meant is a *fault.Problem, of class
// fault.Usage or fault.Input, that names what is accepted.
func ParseCNI(text string) (Request, error) {
	text = strings.TrimSpace(text)
	name, rest, named := strings.Cut(text, "@")
	r := Request{Project: name, Form: Bare, Text: public(text)}
	switch {
	case slices.Contains(CNIs(), text):
		return r, nil
	case onlyPath(text) && !(named && slices.Contains(CNIs(), name)):
		p := guessProject(text)
		if p == nil {
			return Request{}, refuse(cniFlag, text, whyNoPath(text, "a CNI"), "name the CNI: antrea@"+text+"; "+acceptedCNI)
		}
		return Request{Project: p.name, Form: Path, Path: text, Text: text}, nil
	case !named || !slices.Contains(CNIs(), name):
		return Request{}, &fault.Problem{Class: fault.Usage, Field: cniFlag, Value: r.Text, Why: "is not known", Fix: acceptedCNI}
	case name == None:
		return Request{}, &fault.Problem{Class: fault.Usage, Field: cniFlag, Value: r.Text, Why: "names a source for no CNI", Fix: acceptedCNI}
	case rest == "":
		return Request{}, &fault.Problem{Class: fault.Usage, Field: cniFlag, Value: r.Text, Why: "names no ref and no path after the @", Fix: acceptedCNI}
	case onlyPath(rest):
		r.Form, r.Path = Path, rest
		return r, nil
	case name == Flannel:
		return Request{}, refuse(cniFlag, r.Text, "can't be compiled here: flanneld.exe needs cgo and a C compiler for Windows",
			"take its release: flannel@./flannel-VERSION-windows-amd64.tar.gz (https://github.com/flannel-io/flannel/releases)")
	}
	return r.git(rest, cniFlag)
}

// git fills in repository and ref.
func (r Request) git(text, flag string) (Request, error) {
	r.Form, r.Ref = Git, text
	remote := "https://example.com/x.git" // one that passes, where the project's own is meant
	if rest, ok := strings.CutPrefix(text, "git:"); ok {
		remote, r.Ref = gosource.SplitRemote(rest)
		r.Remote = remote
	} else if strings.Contains(text, "://") {
		return Request{}, refuse(flag, r.Text, "is a URL, of which no ref is named", "write it as git:REPOSITORY@REF")
	}
	if why := gosource.CheckRemote(remote, r.Ref); why != "" {
		return Request{}, refuse(flag, r.Text, why, "write git:REPOSITORY@REF, such as git:https://github.com/you/"+r.Project+".git@my-branch, or ./PATH for a path")
	}
	return r, nil
}

// ParseContainerd reads the text of --containerd. What can't be meant is a
// *fault.Problem that names what is accepted.
func ParseContainerd(text string) (Request, error) {
	text = strings.TrimSpace(text)
	r := Request{Project: Containerd, Text: public(text)}
	match := func(re string) bool { return regexp.MustCompile(re).MatchString(text) }
	switch {
	case text == "":
		return Request{}, &fault.Problem{Class: fault.Usage, Field: containerdFlag, Why: "is empty", Fix: acceptedContainerd}
	case strings.HasPrefix(text, "git:"), strings.Contains(text, "://"):
		return r.git(text, containerdFlag)
	case match(`^v?\d+\.\d+`) && !onlyPath(text):
		return r.release(text)
	case match(`^(main|release/\d+\.\d+|pull/[1-9]\d*(/head|/merge)?|[0-9a-f]{7,40})$`):
		return r.git(text, containerdFlag)
	}
	r.Form, r.Path = Path, text
	return r, nil
}

// release fills in the version of a release.
func (r Request) release(text string) (Request, error) {
	v := "v" + strings.TrimPrefix(text, "v")
	switch {
	case !semver.IsValid(v) || semver.Canonical(v) != v:
		return Request{}, refuse(containerdFlag, r.Text, "is no release: the form is X.Y.Z", acceptedContainerd)
	case semver.Compare(v, "v2.0.0") < 0:
		return Request{}, refuse(containerdFlag, r.Text, "is older than v2.0.0, the oldest that is compiled from its module",
			"give a newer one, or git:https://github.com/containerd/containerd.git@"+v)
	}
	r.Form, r.Version = Module, v
	return r, nil
}

// public takes user names and passwords out of the URLs in a text.
func public(text string) string {
	return regexp.MustCompile(`://[^/@\s]*@`).ReplaceAllString(text, "://")
}

func refuse(flag, value, why, fix string) *fault.Problem {
	return &fault.Problem{Class: fault.Input, Field: flag, Value: value, Why: why, Fix: fix}
}

// onlyPath says whether text can be meant as a path only.
func onlyPath(text string) bool {
	return text == "." || text == ".." || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || filepath.IsAbs(text) ||
		strings.HasPrefix(text, "/") || strings.Contains(text, `\`) || strings.HasSuffix(text, ".tar") || strings.HasSuffix(text, ".tar.gz") || strings.HasSuffix(text, ".tgz")
}

// whyNoPath says what is wrong with a path that tells of no project.
func whyNoPath(path, of string) string {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "does not exist"
	} else if err != nil {
		return "can't be read"
	}
	return "does not say whose it is: it is no source tree and holds no programs of " + of
}

// Rebase replaces the path in a text of --cni or --containerd (flag says which)
// by what change makes of it; a text that names no path stays as it is. So does
// one that isn't understood.
func Rebase(flag, text string, change func(path string) string) string {
	trimmed := strings.TrimSpace(text)
	if flag == containerdFlag {
		if r, err := ParseContainerd(trimmed); err == nil && r.Form == Path {
			return change(r.Path)
		}
		return text
	}
	if onlyPath(trimmed) {
		return change(trimmed)
	}
	if name, rest, ok := strings.Cut(trimmed, "@"); ok && onlyPath(rest) {
		return name + "@" + change(rest)
	}
	return text
}

package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// DefaultGitURL is the repository of Kubernetes itself: a branch, a commit and
// a pull request that are named without a repository are looked for there.
const DefaultGitURL = "https://github.com/kubernetes/kubernetes.git"

// gitSource compiles any commit of any repository.
type gitSource struct {
	text   string // as the user wrote it
	remote string
	ref    string
	opts   Options
}

// gitTreeInput is the input that stands for the files of a tree.
const gitTreeInput = "git-tree"

// newGitURL returns the source of "git:REPOSITORY@REF".
func newGitURL(text string, opts Options) (Source, error) {
	remote := strings.TrimPrefix(text, "git:")
	ref := "HEAD"
	// The user of "git@host:path" is no ref, and neither is anything in a URL
	// that has no path yet.
	if i := strings.LastIndex(remote, "@"); i > 0 && !strings.Contains(remote[i+1:], ":") && !regexp.MustCompile(`://[^/]*$`).MatchString(remote[:i]) {
		remote, ref = remote[:i], remote[i+1:]
	}
	return newGitSource(text, remote, ref, opts)
}

// newGitRef returns the source of a ref of Kubernetes' own repository.
func newGitRef(text string, opts Options) (Source, error) {
	remote := opts.GitURL
	if remote == "" {
		remote = DefaultGitURL
	}
	return newGitSource(text, remote, text, opts)
}

func newGitSource(text, remote, ref string, opts Options) (Source, error) {
	const fix = "write git:REPOSITORY@REF, such as git:https://github.com/you/kubernetes.git@my-branch"
	switch {
	case remote == "" || strings.HasPrefix(remote, "-") || strings.ContainsFunc(remote, isControl) || strings.Contains(remote, "::"):
		return nil, versionProblem(field, text, "names no git repository", fix)
	case !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/+=#-]*$`).MatchString(ref) || strings.Contains(ref, "..") || strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".lock"):
		return nil, versionProblem(field, text, fmt.Sprintf("names no git ref (%q)", ref), fix)
	}
	return &gitSource{text: text, remote: remote, ref: ref, opts: opts}, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// Resolve finds the commit, fetching history but no more files than it needs to
// look at, and pins the tree, the toolchain and the flags.
func (s *gitSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	m, err := openMirror(ctx, s.opts, s.remote, sink)
	if err != nil {
		return Ref{}, err
	}
	commit, err := m.find(ctx, s.ref)
	if errors.Is(err, errNoRef) {
		return Ref{}, s.unknown(ctx, m)
	}
	if err != nil {
		return Ref{}, err
	}
	facts, err := s.describe(ctx, m, commit)
	if err != nil {
		return Ref{}, err
	}
	return pinTree(ctx, s.text, facts, m.read(ctx, commit), s.opts, sink)
}

// commitFacts are what a repository says of a commit.
type commitFacts struct {
	source    string // of the ref
	commit    string
	tree      string // digest of the files
	time      string // seconds since 1970
	described string // output of git describe; empty: it found no tag
	dirty     bool
	archive   bool
	ignored   string // digest of the files that git ignores and go doesn't, where there are such
}

// describe reads what the mirror says of a commit.
func (s *gitSource) describe(ctx context.Context, m *mirror, commit string) (commitFacts, error) {
	dir, err := os.MkdirTemp("", "wbox-view-")
	if err != nil {
		return commitFacts{}, fmt.Errorf("making a view of the git mirror: %w", err)
	}
	defer os.RemoveAll(dir)
	view, err := m.view(ctx, dir)
	if err != nil {
		return commitFacts{}, err
	}
	return readCommit(ctx, view, commit)
}

// readCommit reads what a repository says of a commit.
func readCommit(ctx context.Context, git *gitTool, commit string) (commitFacts, error) {
	out, err := git.text(ctx, "show", "-s", "--no-show-signature", "--format=%H %T %ct", commit)
	if err != nil {
		return commitFacts{}, gitProblem(ctx, err, commit, "reading the commit")
	}
	f := commitFacts{source: "git"}
	if _, err := fmt.Sscan(out, &f.commit, &f.tree, &f.time); err != nil {
		return f, fmt.Errorf("reading what git show prints: %w", err)
	}
	f.tree = "git:" + f.tree
	f.described, err = git.text(ctx, "describe", "--tags", "--match=v*", "--abbrev=14", commit+"^{commit}")
	if err != nil && ctx.Err() != nil {
		return f, fmt.Errorf("describing the commit: %w", ctx.Err())
	}
	return f, nil
}

// version is the version of the commit: as the user says, else as its tags say.
func (f commitFacts) version(value string, opts Options) (string, error) {
	if opts.Version != "" {
		v, err := normalizeVersion(opts.Version, true)
		if err != nil {
			return "", &fault.Problem{Class: fault.Input, Field: "--k8s-version", Value: opts.Version, Why: "is no version", Err: err, Fix: "give it as kubelet.exe --version is to print it"}
		}
		return v, nil
	}
	if f.described == "" {
		return "", versionProblem(field, value, "has no tag of a version (v*) in its history, so that its version is not known",
			"push the tags of Kubernetes to that repository, or say --k8s-version")
	}
	v, err := describedVersion(f.described, f.dirty)
	if err != nil {
		return "", &fault.Problem{Class: fault.Input, Field: field, Value: value, Why: "has no version that Kubernetes can have", Err: err, Fix: "fetch or mend the tags of that repository, or say --k8s-version"}
	}
	return v, nil
}

// pinTree makes the ref of a tree: everything that decides the bytes of a
// compile.
func pinTree(ctx context.Context, value string, f commitFacts, read fileReader, opts Options, sink report.Sink) (Ref, error) {
	ref := Ref{Source: f.source, Commit: f.commit, TreeState: "clean", Inputs: map[string]string{gitTreeInput: f.tree}}
	switch {
	case f.dirty:
		ref.TreeState = "dirty"
	case f.archive:
		ref.TreeState = "archive"
	}
	if f.ignored != "" {
		ref.Inputs["ignored-files"] = f.ignored
	}
	var err error
	if ref.Version, err = f.version(value, opts); err != nil {
		return Ref{}, err
	}
	if ref.BuildDate, err = buildDateOf(opts, f.time); err != nil {
		return Ref{}, err
	}
	t, err := readTreeFrom(read, ref.Version)
	if err != nil {
		if ctx.Err() != nil {
			return Ref{}, fmt.Errorf("reading the source: %w", ctx.Err())
		}
		return Ref{}, &fault.Problem{Class: fault.Input, Field: field, Value: value, Why: "has no Kubernetes source that can be compiled", Err: err, Fix: accepted}
	}
	if opts.Version == "" {
		if err := checkMinor(ref.Version, read, sink); err != nil {
			return Ref{}, &fault.Problem{Class: fault.Input, Field: field, Value: value, Why: "has no version that it can have", Err: err, Fix: "fetch its tags, or say --k8s-version"}
		}
	}
	if t.guessed {
		sink.Emit(report.Event{Kind: report.Warning, Message: ref.Version + " does not say its build tags; using " + strings.Join(t.tags, ",")})
	}
	g, err := newGoTool(ctx, opts)
	if err != nil {
		return Ref{}, err
	}
	if ref.Toolchain, err = g.toolchain(ctx, os.TempDir(), t, sink); err != nil {
		return Ref{}, err
	}
	pinFlags(ref.Inputs, ref, strings.Join(t.tags, ","), opts)
	return ref, nil
}

// Fetch writes the files of the commit into a folder of its own and compiles
// them there. The folder is dropped, the log of the compile stays.
func (s *gitSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	m, err := openMirror(ctx, s.opts, s.remote, sink)
	if err != nil {
		return Bits{}, err
	}
	if _, err := m.findHash(ctx, ref.Commit); err != nil {
		if errors.Is(err, errNoRef) {
			return Bits{}, versionProblem(field, s.text, "no longer has the commit "+ref.Commit, "resolve it anew")
		}
		return Bits{}, err
	}
	src := filepath.Join(scratch, "src")
	sink.Emit(report.Event{Kind: report.StageProgress, Message: "fetching the files of " + ref.Version})
	defer os.RemoveAll(src)
	if err := m.checkOut(ctx, ref.Commit, src); err != nil {
		return Bits{}, err
	}
	from := "compiled from " + withoutPassword(s.remote) + " at " + ref.Commit
	return compileTree(ctx, ref, src, from, dir, scratch, s.opts, sink)
}

// compileTree compiles the source in root, which it doesn't change.
func compileTree(ctx context.Context, ref Ref, root, from, dir, scratch string, opts Options, sink report.Sink) (Bits, error) {
	g, err := newGoTool(ctx, opts)
	if err != nil {
		return Bits{}, err
	}
	b, err := newBuild(field, ref, g, opts, scratch, sink)
	if err != nil {
		return Bits{}, err
	}
	defer b.log.Close()
	if err := os.Mkdir(b.out, 0o755); err != nil {
		return Bits{}, fmt.Errorf("making a folder for the build: %w", err)
	}
	b.root, b.targets = root, targetsOf(Programs(), opts.Linux)
	b.env = append(g.buildEnv(os.Environ(), ref.Toolchain), treeEnv(root, g)...)
	t, err := readTree(root, ref.Version)
	if err != nil {
		return Bits{}, fmt.Errorf("reading the source of %s: %w", ref.Version, err)
	}
	if err := b.setTags(t.tags); err != nil {
		return Bits{}, err
	}
	b.expect = func(t target, p plan) Expect {
		e := Expect{Name: t.program, GOOS: t.goos, GoVersion: ref.Toolchain, From: from + " with " + ref.Toolchain}
		if t.program != KubeLogRunner || p.stamped[t] {
			e.Stamps, e.Standalone = stampsOf(ref), ref.Version
		}
		return e
	}
	return b.all(ctx, dir)
}

// treeEnv are the settings of the go command inside of a source tree: its own
// workspace and vendor folder count, and no file of it is written.
func treeEnv(root string, g *goTool) []string {
	work := filepath.Join(root, "go.work")
	if _, err := os.Stat(work); err != nil {
		work = "off"
	}
	// Without it the go command asks git for the tree's version, and notes the
	// answer in the module cache as if the module had been downloaded: a fork's
	// tag would then be taken for the release of that name.
	goflags := "-buildvcs=false"
	if strings.Contains(" "+g.user["GOFLAGS"]+" ", " -modcacherw ") {
		goflags += " -modcacherw"
	}
	return []string{"GOWORK=" + work, "GOFLAGS=" + goflags}
}

// unknown explains that the remote has no such ref, and names some that are near.
func (s *gitSource) unknown(ctx context.Context, m *mirror) error {
	p := &fault.Problem{Class: fault.Input, Field: field, Value: s.text, Why: withoutPassword(m.remote) + " has no ref or commit " + s.ref, Fix: "check its spelling"}
	out, err := m.git.run(ctx, "ls-remote", "--heads", "--tags", "--refs", m.name)
	if err != nil {
		return p
	}
	var tags, branches []string
	for _, f := range strings.Fields(string(out)) {
		if tag, ok := strings.CutPrefix(f, "refs/tags/"); ok {
			tags = append(tags, tag)
		} else if branch, ok := strings.CutPrefix(f, "refs/heads/"); ok {
			branches = append(branches, branch)
		}
	}
	slices.Sort(branches)
	switch near := nearest(tags, s.ref); {
	case semver.IsValid(s.ref) && len(near) > 0:
		p.Fix = "the nearest tags: " + strings.Join(near, ", ")
	case len(branches) > 0:
		p.Fix = "its branches: " + strings.Join(branches[:min(8, len(branches))], ", ")
		if len(branches) > 8 {
			p.Fix += fmt.Sprintf(" and %d more", len(branches)-8)
		}
	}
	return p
}

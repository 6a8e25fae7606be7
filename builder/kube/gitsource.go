package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
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

// newGitURL returns the source of "git:REPOSITORY@REF".
func newGitURL(text string, opts Options) (Source, error) {
	remote, ref := gosource.SplitRemote(strings.TrimPrefix(text, "git:"))
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
	if why := gosource.CheckRemote(remote, ref); why != "" {
		return nil, versionProblem(field, text, why, "write git:REPOSITORY@REF, such as git:https://github.com/you/kubernetes.git@my-branch")
	}
	return &gitSource{text: text, remote: remote, ref: ref, opts: opts}, nil
}

// Resolve finds the commit, fetching history but no more files than it needs to
// look at, and pins the tree, the toolchain and the flags.
func (s *gitSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	m, err := gosource.OpenMirror(ctx, s.opts.settings(), s.remote, sink)
	if err != nil {
		return Ref{}, err
	}
	commit, err := m.Find(ctx, s.ref)
	if errors.Is(err, gosource.ErrNoRef) {
		return Ref{}, m.Unknown(ctx, s.text, s.ref, nearestTags)
	}
	if err != nil {
		return Ref{}, err
	}
	facts, err := m.Facts(ctx, commit)
	if err != nil {
		return Ref{}, err
	}
	return pinTree(ctx, s.text, facts, m.Read(ctx, commit), s.opts, sink)
}

// nearestTags picks the tags that are near a version.
func nearestTags(tags []string, ref string) []string {
	if !semver.IsValid(ref) {
		return nil
	}
	return nearest(tags, ref)
}

// versionOf is the version of the commit: as the user says, else as its tags say.
func versionOf(f gosource.Facts, value string, opts Options) (string, error) {
	if opts.Version != "" {
		v, err := normalizeVersion(opts.Version, true)
		if err != nil {
			return "", &fault.Problem{Class: fault.Input, Field: "--k8s-version", Value: opts.Version, Why: "is no version", Err: err, Fix: "give it as kubelet.exe --version is to print it"}
		}
		return v, nil
	}
	if f.Described == "" {
		return "", versionProblem(field, value, "has no tag of a version (v*) in its history, so that its version is not known",
			"push the tags of Kubernetes to that repository, or say --k8s-version")
	}
	v, err := describedVersion(f.Described, f.Dirty)
	if err != nil {
		return "", &fault.Problem{Class: fault.Input, Field: field, Value: value, Why: "has no version that Kubernetes can have", Err: err, Fix: "fetch or mend the tags of that repository, or say --k8s-version"}
	}
	return v, nil
}

// pinTree makes the ref of a tree: everything that decides the bytes of a
// compile.
func pinTree(ctx context.Context, value string, f gosource.Facts, read gosource.FileReader, opts Options, sink report.Sink) (Ref, error) {
	ref := f.Ref()
	var err error
	if ref.Version, err = versionOf(f, value, opts); err != nil {
		return Ref{}, err
	}
	if ref.BuildDate, err = opts.settings().BuildDate(f.Time); err != nil {
		return Ref{}, err
	}
	t, err := readTreeFrom(read, ref.Version)
	if err != nil {
		if ctx.Err() != nil {
			return Ref{}, fmt.Errorf("reading the source: %w", ctx.Err())
		}
		if p := (*fault.Problem)(nil); errors.As(err, &p) { // it is not the source that is wrong
			return Ref{}, err
		}
		return Ref{}, &fault.Problem{Class: fault.Input, Field: field, Value: value, Why: "has no Kubernetes source that can be compiled", Err: err, Fix: accepted}
	}
	if opts.Version == "" {
		if err := checkMinor(ref.Version, read, sink); err != nil {
			if p := (*fault.Problem)(nil); errors.As(err, &p) {
				return Ref{}, err
			}
			return Ref{}, &fault.Problem{Class: fault.Input, Field: field, Value: value, Why: "has no version that it can have", Err: err, Fix: "fetch its tags, or say --k8s-version"}
		}
	}
	if t.guessed {
		sink.Emit(report.Event{Kind: report.Warning, Message: ref.Version + " does not say its build tags; using " + strings.Join(t.tags, ",")})
	}
	g, err := gosource.NewGoTool(ctx, opts.settings())
	if err != nil {
		return Ref{}, err
	}
	if ref.Toolchain, err = g.Toolchain(ctx, os.TempDir(), t.pinned, t.golang, sink); err != nil {
		return Ref{}, err
	}
	pinFlags(ref.Inputs, ref, strings.Join(t.tags, ","), opts)
	return ref, nil
}

// Fetch writes the files of the commit into a folder of its own and compiles
// them there. The folder is dropped, the log of the compile stays.
func (s *gitSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	m, err := gosource.OpenMirror(ctx, s.opts.settings(), s.remote, sink)
	if err != nil {
		return Bits{}, err
	}
	return m.At(ctx, s.text, ref, scratch, func(root string) (Bits, error) {
		return compileTree(ctx, ref, sourceTree{root: root, from: m.From(ref)}, dir, scratch, s.opts, sink)
	})
}

// sourceTree is a tree to compile.
type sourceTree struct {
	root string // its folder
	from string // goes into every Binary
	last string // the folder for what its compiles leave to the next; optional
}

// compileTree compiles a source tree, which it doesn't change.
func compileTree(ctx context.Context, ref Ref, src sourceTree, dir, scratch string, opts Options, sink report.Sink) (Bits, error) {
	g, err := gosource.NewGoTool(ctx, opts.settings())
	if err != nil {
		return Bits{}, err
	}
	b, err := gosource.NewBuild(opts.settings(), ref, g, scratch, sink)
	if err != nil {
		return Bits{}, err
	}
	defer b.Close()
	if err := os.Mkdir(b.Out, 0o755); err != nil {
		return Bits{}, fmt.Errorf("making a folder for the build: %w", err)
	}
	b.Root, b.Last, b.Programs = src.root, src.last, programsOf(opts.targets(Programs()))
	b.Env = append(g.BuildEnv(os.Environ(), ref.Toolchain), gosource.TreeEnv(src.root, g)...)
	t, err := readTree(src.root, ref.Version)
	if err != nil {
		return Bits{}, fmt.Errorf("reading the source of %s: %w", ref.Version, err)
	}
	if err := setFlags(b, t.tags, opts); err != nil {
		return Bits{}, err
	}
	b.Expect = func(p gosource.Program) Expect {
		e := expectOf(p, ref)
		e.From, e.Stamps, e.Standalone = src.from+" with "+ref.Toolchain, stampsOf(ref), ref.Version
		return e
	}
	bits, err := b.All(ctx, dir)
	if err != nil {
		return Bits{}, err
	}
	return bits, opts.tryOut(ctx, bits, dir, true, sink)
}

// expectOf is what every compiled program must prove. A program that has no
// version package (kube-log-runner) can't be stamped.
func expectOf(p gosource.Program, ref Ref) Expect {
	e := Expect{Name: p.Name, Packages: []string{p.Package}, GOOS: p.GOOS, GOARCH: p.GOARCH, Field: field, GoVersion: ref.Toolchain}
	if p.Name == KubeLogRunner {
		e.IfIn = versionPackages()
	}
	return e
}

// setFlags takes the build tags of the tree, if with them the flags are those
// that the ref pins.
func setFlags(b *gosource.Build, tags []string, opts Options) error {
	b.Tags = strings.Join(tags, ",")
	b.Flags = buildFlags(b.Ref, b.Tags, opts.Debug)
	want := map[string]string{}
	pinFlags(want, b.Ref, b.Tags, opts)
	for name, digest := range want {
		if b.Ref.Inputs[name] != digest {
			return b.Settings.Problem(b.Ref.Version, "was pinned with other build flags, by another wbox", "resolve it anew")
		}
	}
	return nil
}

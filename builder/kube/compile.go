package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// linkMemory is the free memory in bytes below which programs are built one
// after the other: linking all of them at once takes 2.5 GB, one alone 1.5 GB.
const linkMemory = 4 << 30

// build is one compile under way, whatever the source lies in: an outer module
// of ours or a tree. Who makes it fills in root, env, targets and expect.
type build struct {
	flag    string // the flag that a problem is about
	ref     Ref
	g       *goTool
	opts    Options
	env     []string
	root    string // where the go command runs
	out     string // where go build writes to
	targets []target
	tags    string
	expect  func(t target, p plan) Expect // what a compiled program must prove
	log     *os.File
	sink    report.Sink
}

// newBuild makes a build whose log and results lie in scratch. Its log must be
// closed in the end.
func newBuild(flag string, ref Ref, g *goTool, opts Options, scratch string, sink report.Sink) (*build, error) {
	log, err := os.Create(filepath.Join(scratch, "go-build.log"))
	if err != nil {
		return nil, fmt.Errorf("making the log of the build: %w", err)
	}
	return &build{flag: flag, ref: ref, g: g, opts: opts, out: filepath.Join(scratch, "out"), log: log, sink: sink}, nil
}

// setTags takes the build tags of the tree, if with them the flags are those
// that the ref pins.
func (b *build) setTags(tags []string) error {
	b.tags = strings.Join(tags, ",")
	want := map[string]string{}
	pinFlags(want, b.ref, b.tags, b.opts)
	for name, digest := range want {
		if b.ref.Inputs[name] != digest {
			return &fault.Problem{Class: fault.Input, Field: b.flag, Value: b.ref.Version, Why: "was pinned with other build flags, by another wbox", Fix: "resolve it anew"}
		}
	}
	return nil
}

// all plans, compiles and keeps the verified programs in dir.
func (b *build) all(ctx context.Context, dir string) (Bits, error) {
	p, err := b.plan(ctx)
	if err != nil {
		return Bits{}, err
	}
	if err := b.compile(ctx, p); err != nil {
		return Bits{}, err
	}
	return b.collect(p, dir)
}

// plan is what go list says of the programs.
type plan struct {
	packages int             // to compile in all, those of the standard library included
	stamped  map[target]bool // programs that contain a version package
}

// systems lists the systems that there are targets for, Windows first.
func (b *build) systems() []string {
	out := []string{windows}
	if packagesFor(b.targets, linux) != nil {
		out = append(out, linux)
	}
	return out
}

// plan downloads what is missing and looks at what each program consists of.
func (b *build) plan(ctx context.Context) (plan, error) {
	p := plan{stamped: map[target]bool{}}
	b.progress("looking for the modules of "+b.ref.Version, 0, 0)
	modules := 0
	for _, goos := range b.systems() {
		out, err := b.run(ctx, goos, func(line string) {
			if name, ok := strings.CutPrefix(line, "go: downloading "); ok {
				modules++
				b.progress("downloading "+name, int64(modules), 0)
			}
		}, append([]string{"list", "-tags=" + b.tags, "-f", `{{.ImportPath}} {{join .Deps " "}}`}, packagesFor(b.targets, goos)...)...)
		if err != nil {
			return p, b.explain(ctx, err, nil)
		}
		all := map[string]bool{}
		for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			names := strings.Fields(line)
			for _, name := range names {
				all[name] = true
			}
			for _, t := range b.targets {
				if t.goos == goos && len(names) > 0 && packageOf(t.program) == names[0] {
					p.stamped[t] = slices.ContainsFunc(versionPackages(), func(v string) bool { return slices.Contains(names, v) })
				}
			}
		}
		p.packages += len(all)
	}
	return p, nil
}

// compile runs go build: once a system, or once per program where memory is short.
func (b *build) compile(ctx context.Context, p plan) error {
	free, known := freeMemory()
	w := newWatcher(b.sink, int64(p.packages))
	for _, goos := range b.systems() {
		w.suffix = target{goos: goos}.file() // of no name: ".exe" or nothing
		groups := buildGroups(packagesFor(b.targets, goos), free, known)
		if len(groups) > 1 {
			b.sink.Emit(report.Event{Kind: report.Note, Message: fmt.Sprintf("%d MiB of memory are free: linking one program at a time", free>>20)})
		}
		for _, group := range groups {
			args := append([]string{"build", "-v", "-o", b.out + string(filepath.Separator)}, buildFlags(b.ref, b.tags, b.opts.Debug)...)
			if b.opts.Parallel > 0 {
				args = append(args, "-p="+strconv.Itoa(b.opts.Parallel))
			}
			if _, err := b.run(ctx, goos, w.line, append(args, group...)...); err != nil {
				return b.explain(ctx, err, w)
			}
		}
	}
	b.progress("compiled "+b.ref.Version, int64(p.packages), int64(p.packages))
	return nil
}

// buildGroups says which packages go build gets at once.
func buildGroups(packages []string, free int64, known bool) [][]string {
	if !known || free >= linkMemory {
		return [][]string{packages}
	}
	var groups [][]string
	for _, pkg := range packages {
		groups = append(groups, []string{pkg})
	}
	return groups
}

// run calls the go command in the build's folder, for one system, and logs
// what it prints.
func (b *build) run(ctx context.Context, goos string, line func(string), args ...string) ([]byte, error) {
	argv := append([]string{b.g.path}, args...)
	fmt.Fprintf(b.log, "$ %q\n", argv)
	return command{argv: argv, dir: b.root, env: append(slices.Clone(b.env), "GOOS="+goos), line: func(text string) {
		fmt.Fprintln(b.log, text)
		line(text)
	}}.run(ctx)
}

// collect verifies the programs and moves them into dir.
func (b *build) collect(p plan, dir string) (Bits, error) {
	bits := Bits{Ref: b.ref}
	for _, t := range b.targets {
		bin, err := Verify(filepath.Join(b.out, t.file()), b.expect(t, p))
		if err != nil {
			return Bits{}, fmt.Errorf("verifying what was compiled: %w", err)
		}
		bits.Binaries = append(bits.Binaries, bin)
	}
	for _, bin := range bits.Binaries {
		if err := moveFile(filepath.Join(b.out, bin.File), filepath.Join(dir, bin.File)); err != nil {
			return Bits{}, fmt.Errorf("keeping %s: %w", bin.File, err)
		}
	}
	sortBinaries(bits.Binaries)
	return bits, nil
}

func (b *build) progress(msg string, done, total int64) {
	b.sink.Emit(report.Event{Kind: report.StageProgress, Message: msg, Done: done, Total: total})
}

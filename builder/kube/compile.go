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

// Fetch compiles the ref's programs with one call of go build, so that what
// they share is compiled once. The whole output of the go command is kept in
// scratch, in go-build.log.
func (s *moduleSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	g, err := newGoTool(ctx, s.opts)
	if err != nil {
		return Bits{}, err
	}
	log, err := os.Create(filepath.Join(scratch, "go-build.log"))
	if err != nil {
		return Bits{}, fmt.Errorf("making the log of the build: %w", err)
	}
	defer log.Close()
	b := &build{source: s, ref: ref, g: g, root: filepath.Join(scratch, "module"), out: filepath.Join(scratch, "out"), log: log, sink: sink}
	b.env = g.buildEnv(os.Environ(), ref.Toolchain)
	if err := b.prepare(ctx); err != nil {
		return Bits{}, err
	}
	plan, err := b.plan(ctx)
	if err != nil {
		return Bits{}, err
	}
	if err := b.compile(ctx, plan); err != nil {
		return Bits{}, err
	}
	return b.collect(plan, dir)
}

// build is one compile under way.
type build struct {
	source *moduleSource
	ref    Ref
	g      *goTool
	env    []string
	root   string // the outer module
	out    string // where go build writes to
	tags   string
	log    *os.File
	sink   report.Sink
}

// prepare writes the outer module. Its go.sum has the digests of the ref, so
// that the go command refuses whatever else a proxy would serve.
func (b *build) prepare(ctx context.Context) error {
	for _, d := range []string{b.root, b.out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return fmt.Errorf("making a folder for the build: %w", err)
		}
	}
	mod, err := b.source.main(ctx, b.g, b.root)
	if err != nil {
		return err
	}
	if want := b.ref.Inputs[mainModule+"@"+b.ref.Version]; mod.Sum != want {
		return &fault.Problem{Class: fault.Input, Field: b.source.flag, Value: b.ref.Version, Why: "has the digest " + mod.Sum + ", pinned is " + want, Fix: "resolve it anew"}
	}
	t, err := readTree(mod.Dir, b.ref.Version)
	if err != nil {
		return fmt.Errorf("reading the source of %s: %w", b.ref.Version, err)
	}
	b.tags = strings.Join(t.tags, ",")
	if got := buildInput(buildFlags(b.ref, b.tags)); got != b.ref.Inputs[buildInputName] {
		return &fault.Problem{Class: fault.Input, Field: b.source.flag, Value: b.ref.Version, Why: "was pinned with other build flags, by another wbox", Fix: "resolve it anew"}
	}
	gomod, err := t.outerMod(b.ref.Version)
	if err != nil {
		return err
	}
	gosum, err := os.ReadFile(filepath.Join(mod.Dir, "go.sum"))
	if err != nil {
		return fmt.Errorf("reading go.sum of Kubernetes: %w", err)
	}
	gosum = append(gosum, pinnedSums(b.ref)...)
	if err := os.WriteFile(filepath.Join(b.root, "go.mod"), gomod, 0o644); err != nil {
		return fmt.Errorf("writing the module of the build: %w", err)
	}
	if err := os.WriteFile(filepath.Join(b.root, "go.sum"), gosum, 0o644); err != nil {
		return fmt.Errorf("writing the module of the build: %w", err)
	}
	return nil
}

// pinnedSums are the lines of go.sum for the modules that a ref pins.
func pinnedSums(ref Ref) string {
	var lines []string
	for name, sum := range ref.Inputs {
		if path, ver, ok := strings.Cut(name, "@"); ok {
			lines = append(lines, path+" "+ver+" "+sum+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// plan is what go list says of the programs.
type plan struct {
	packages int             // to compile in all, those of the standard library included
	stamped  map[string]bool // programs that contain a version package
}

// plan downloads what is missing and looks at what each program consists of.
func (b *build) plan(ctx context.Context) (plan, error) {
	p := plan{stamped: map[string]bool{}}
	b.progress("looking for the modules of "+b.ref.Version, 0, 0)
	modules := 0
	out, err := b.run(ctx, func(line string) {
		if name, ok := strings.CutPrefix(line, "go: downloading "); ok {
			modules++
			b.progress("downloading "+name, int64(modules), 0)
		}
	}, append([]string{"list", "-tags=" + b.tags, "-f", `{{.ImportPath}} {{join .Deps " "}}`}, b.packages()...)...)
	if err != nil {
		return p, b.explain(ctx, err, nil)
	}
	all := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		names := strings.Fields(line)
		for _, name := range names {
			all[name] = true
		}
		for _, program := range b.source.programs {
			if packageOf(program) == names[0] {
				p.stamped[program] = slices.ContainsFunc(versionPackages(), func(v string) bool { return slices.Contains(names, v) })
			}
		}
	}
	p.packages = len(all)
	return p, nil
}

// packages are the import paths of the programs.
func (b *build) packages() []string {
	var out []string
	for _, program := range b.source.programs {
		out = append(out, packageOf(program))
	}
	return out
}

// compile runs go build: once, or once per program where memory is short.
func (b *build) compile(ctx context.Context, p plan) error {
	free, known := freeMemory()
	groups := buildGroups(b.packages(), free, known)
	if len(groups) > 1 {
		b.sink.Emit(report.Event{Kind: report.Note, Message: fmt.Sprintf("%d MiB of memory are free: linking one program at a time", free>>20)})
	}
	w := newWatcher(b.sink, int64(p.packages))
	for _, group := range groups {
		args := append([]string{"build", "-v", "-o", b.out + string(filepath.Separator)}, buildFlags(b.ref, b.tags)...)
		if b.source.opts.Parallel > 0 {
			args = append(args, "-p="+strconv.Itoa(b.source.opts.Parallel))
		}
		if _, err := b.run(ctx, w.line, append(args, group...)...); err != nil {
			return b.explain(ctx, err, w)
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

// run calls the go command in the outer module and logs what it prints.
func (b *build) run(ctx context.Context, line func(string), args ...string) ([]byte, error) {
	argv := append([]string{b.g.path}, args...)
	fmt.Fprintf(b.log, "$ %q\n", argv)
	return command{argv: argv, dir: b.root, env: b.env, line: func(text string) {
		fmt.Fprintln(b.log, text)
		line(text)
	}}.run(ctx)
}

// collect verifies the programs and moves them into dir.
func (b *build) collect(p plan, dir string) (Bits, error) {
	bits := Bits{Ref: b.ref}
	for _, program := range b.source.programs {
		want := b.expect(program, p)
		bin, err := Verify(filepath.Join(b.out, program+".exe"), want)
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

// expect says what a compiled program must prove. That the version occurs
// proves nothing here, since it is part of every module path in the binary; the
// commit and the date are in it only if they were stamped. Where neither is
// known, the version must occur outside of module paths. A program that has no
// version package (kube-log-runner) can't be stamped.
func (b *build) expect(program string, p plan) Expect {
	mod, ver := mainModule, b.ref.Version
	if program == KubeLogRunner {
		mod, ver = "k8s.io/component-base", stagingVersion(ver)
	}
	e := Expect{Name: program, MainVersion: ver, MainSum: b.ref.Inputs[mod+"@"+ver],
		From: "compiled from " + mod + "@" + ver + " with " + b.ref.Toolchain, GoVersion: b.ref.Toolchain}
	if program != KubeLogRunner || p.stamped[program] {
		for _, s := range []string{b.ref.Commit, b.ref.BuildDate} {
			if s != "" {
				e.Stamps = append(e.Stamps, s)
			}
		}
		if e.Stamps == nil {
			e.Standalone = b.ref.Version
		}
	}
	return e
}

func (b *build) progress(msg string, done, total int64) {
	b.sink.Emit(report.Event{Kind: report.StageProgress, Message: msg, Done: done, Total: total})
}

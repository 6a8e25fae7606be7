package gosource

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/report"
)

// linkMemory is the free memory in bytes below which programs are built one
// after the other: linking all of Kubernetes at once takes 2.5 GB, one alone
// 1.5 GB.
const linkMemory = 4 << 30

// Program is one program to compile, for one system.
type Program struct {
	Name    string // such as "kubelet"; its file is named so, whatever the package is called
	Package string // import path of its main package
	GOOS    string // Windows or Linux
	GOARCH  string // Optional: default "amd64". All programs for one system have the same
}

// File is the name of the program's file.
func (p Program) File() string { return FileOf(p.Name, p.GOOS) }

// Build is one compile under way, whatever the source lies in: an outer module
// of ours or a tree. NewBuild makes one; who has it fills in what is said to be
// required.
type Build struct {
	Settings Settings
	Ref      Ref
	Go       *GoTool
	Root     string    // Required: where the go command runs
	Out      string    // an existing folder by the time of All: where go build writes to
	Env      []string  // Required: of the go command
	Programs []Program // Required: those for Windows first
	Tags     string    // build tags, with commas
	Flags    []string  // Required: of go build, those that decide bytes
	Last     string    // where the programs of the last compile are kept for the next; empty: nowhere
	// Expect says what a compiled program must prove. Required.
	Expect func(p Program) Expect

	log  *os.File
	sink report.Sink
}

// NewBuild makes a build whose log and results lie in scratch. It must be
// closed in the end.
func NewBuild(set Settings, ref Ref, g *GoTool, scratch string, sink report.Sink) (*Build, error) {
	log, err := os.OpenFile(filepath.Join(scratch, "go-build.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("making the log of the build: %w", err)
	}
	return &Build{Settings: set, Ref: ref, Go: g, Out: filepath.Join(scratch, "out"), log: log, sink: sink}, nil
}

// Close closes the log.
func (b *Build) Close() error { return b.log.Close() }

// All compiles and keeps the verified programs in dir. What the last compile
// of the same source left is taken up, and not where it turns out to be damaged.
func (b *Build) All(ctx context.Context, dir string) (Bits, error) {
	took := b.takeLast()
	if err := b.compile(ctx, len(took) > 0); err != nil {
		return Bits{}, err
	}
	bins, err := b.verify()
	if len(took) > 0 && (err != nil || b.damaged(took, bins)) {
		if err := b.dropLast(); err != nil {
			return Bits{}, err
		}
		if err := b.compile(ctx, true); err != nil {
			return Bits{}, err
		}
		bins, err = b.verify()
	}
	if err != nil {
		return Bits{}, err
	}
	b.keepLast(bins)
	return b.collect(bins, dir)
}

// verify checks every program that was compiled.
func (b *Build) verify() ([]Binary, error) {
	var bins []Binary
	for _, t := range b.Programs {
		if built := filepath.Join(b.Out, FileOf(path.Base(t.Package), t.GOOS)); t.Name != path.Base(t.Package) {
			if err := os.Rename(built, filepath.Join(b.Out, t.File())); err != nil {
				return nil, fmt.Errorf("naming %s: %w", t.File(), err)
			}
		}
		bin, err := Verify(filepath.Join(b.Out, t.File()), b.Expect(t))
		if err != nil {
			return nil, fmt.Errorf("verifying what was compiled: %w", err)
		}
		bins = append(bins, bin)
	}
	return bins, nil
}

// systems lists the systems that there are programs for, in their order.
func (b *Build) systems() []string {
	var out []string
	for _, p := range b.Programs {
		if !slices.Contains(out, p.GOOS) {
			out = append(out, p.GOOS)
		}
	}
	return out
}

// packagesFor returns the import paths of those programs that are for one system.
func (b *Build) packagesFor(goos string) []string {
	var out []string
	for _, p := range b.Programs {
		if p.GOOS == goos {
			out = append(out, p.Package)
		}
	}
	return out
}

// count downloads what is missing and returns how many packages there are to
// compile, those of the standard library included.
func (b *Build) count(ctx context.Context) (int, error) {
	b.progress("looking for the modules of "+b.Ref.Version, 0, 0)
	modules, packages := 0, 0
	for _, goos := range b.systems() {
		out, err := b.run(ctx, goos, func(line string) {
			if name, ok := strings.CutPrefix(line, "go: downloading "); ok {
				modules++
				b.progress("downloading "+name, int64(modules), 0)
			}
		}, append([]string{"list", "-tags=" + b.Tags, "-f", `{{.ImportPath}} {{join .Deps " "}}`}, b.packagesFor(goos)...)...)
		if err != nil {
			return 0, b.explain(ctx, err, nil)
		}
		all := map[string]bool{}
		for _, name := range strings.Fields(string(out)) {
			all[name] = true
		}
		packages += len(all)
	}
	return packages, nil
}

// compile runs go build: once a system, or once per program where memory is
// short. A quick one doesn't count the packages first, which takes a second of
// the go command, so that its progress has no end.
func (b *Build) compile(ctx context.Context, quick bool) error {
	packages := 0
	if !quick {
		var err error
		if packages, err = b.count(ctx); err != nil {
			return err
		}
	}
	free, known := freeMemory()
	w := newWatcher(b.sink, int64(packages), b.Programs)
	for _, goos := range b.systems() {
		w.goos = goos
		groups := buildGroups(b.packagesFor(goos), free, known)
		if len(groups) > 1 {
			b.sink.Emit(report.Event{Kind: report.Note, Message: fmt.Sprintf("%d MiB of memory are free: linking one program at a time", free>>20)})
		}
		for _, group := range groups {
			args := append([]string{"build", "-v", "-o", b.Out + string(filepath.Separator)}, b.Flags...)
			if b.Settings.Parallel > 0 {
				args = append(args, "-p="+strconv.Itoa(b.Settings.Parallel))
			}
			if _, err := b.run(ctx, goos, w.line, append(args, group...)...); err != nil {
				return b.explain(ctx, err, w)
			}
		}
	}
	b.progress("compiled "+b.Ref.Version, int64(packages), int64(packages))
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

// archOf is the processor that the programs for one system are for.
func (b *Build) archOf(goos string) string {
	for _, p := range b.Programs {
		if p.GOOS == goos && p.GOARCH != "" {
			return p.GOARCH
		}
	}
	return amd64
}

// run calls the go command in the build's folder, for one system, and logs
// what it prints.
func (b *Build) run(ctx context.Context, goos string, line func(string), args ...string) ([]byte, error) {
	argv := append([]string{b.Go.path}, args...)
	fmt.Fprintf(b.log, "$ %q\n", argv)
	env := append(append(slices.Clone(b.Env), "GOOS="+goos, "GOARCH="+b.archOf(goos)), b.tempEnv()...)
	return Command{Argv: argv, Dir: b.Root, Env: env, Line: func(text string) {
		fmt.Fprintln(b.log, text)
		line(text)
	}}.Run(ctx)
}

// tempEnv has the go command work beside the results unless the user names a
// folder: it takes hundreds of MB, and the system's for temporary files may be small.
func (b *Build) tempEnv() []string {
	if scratch := filepath.Dir(b.Out); b.Go.User["GOTMPDIR"] == "" && filepath.IsAbs(scratch) {
		return []string{"GOTMPDIR=" + scratch}
	}
	return nil
}

// collect moves the programs into dir.
func (b *Build) collect(bins []Binary, dir string) (Bits, error) {
	bits := Bits{Ref: b.Ref, Binaries: bins}
	for _, bin := range bins {
		if err := MoveFile(filepath.Join(b.Out, bin.File), filepath.Join(dir, bin.File)); err != nil {
			return Bits{}, fmt.Errorf("keeping %s: %w", bin.File, err)
		}
	}
	SortBinaries(bits.Binaries)
	return bits, nil
}

func (b *Build) progress(msg string, done, total int64) {
	b.sink.Emit(report.Event{Kind: report.StageProgress, Message: msg, Done: done, Total: total})
}

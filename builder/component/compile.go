package component

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// compileTree compiles the source in root, which it doesn't change.
func (p *project) compileTree(ctx context.Context, ref Ref, root, from, dir, scratch string, opts Options, sink report.Sink) (Bits, error) {
	t, err := p.readTree(gosource.InDir(root))
	if err != nil {
		return Bits{}, fmt.Errorf("reading the source of %s: %w", ref.Version, err)
	}
	g, err := gosource.NewGoTool(ctx, opts.settings(p))
	if err != nil {
		return Bits{}, err
	}
	env := append(g.BuildEnv(os.Environ(), ref.Toolchain), gosource.TreeEnv(root, g)...)
	return p.compile(ctx, t, ref, g, job{root: root, env: env, from: from, dir: dir, scratch: scratch, opts: opts, sink: sink})
}

// job is where a compile runs.
type job struct {
	root, from   string
	env          []string
	dir, scratch string
	modVersion   string // of the module that the programs come from; empty: they lie in root
	modSum       string
	opts         Options
	sink         report.Sink
}

// compile compiles the programs of a tree, and the shim where there is one.
func (p *project) compile(ctx context.Context, t tree, ref Ref, g *gosource.GoTool, j job) (Bits, error) {
	r := p.recipe(t, ref)
	if ref.Inputs[flagsInput] != r.digest(ref) {
		return Bits{}, refuse(p.flag, ref.Version, "was pinned with other build flags, by another wbox", "resolve it anew")
	}
	b, err := gosource.NewBuild(j.opts.settings(p), ref, g, j.scratch, j.sink)
	if err != nil {
		return Bits{}, err
	}
	defer b.Close()
	if err := os.MkdirAll(b.Out, 0o755); err != nil {
		return Bits{}, fmt.Errorf("making a folder for the build: %w", err)
	}
	b.Root, b.Env, b.Programs, b.Tags, b.Flags = j.root, j.env, r.programs, r.tags, r.flags()
	b.Expect = func(program gosource.Program) gosource.Expect {
		e := gosource.Expect{Name: program.Name, Packages: []string{program.Package}, GOOS: program.GOOS, Field: p.flag, GoVersion: ref.Toolchain,
			MainVersion: j.modVersion, MainSum: j.modSum, From: j.from + " with " + ref.Toolchain, Stamps: r.stamps, Standalone: r.alone}
		if program.Name == r.unstamped {
			e.Stamps = nil
		}
		return e
	}
	bits, err := b.All(ctx, j.dir)
	if err != nil {
		return Bits{}, err
	}
	if err := p.copyMissing(&bits, j.dir); err != nil {
		return Bits{}, err
	}
	if r.shim != "" {
		bin, err := compileShim(ctx, p, ref, g, j)
		if err != nil {
			return Bits{}, err
		}
		bits.Binaries = append(bits.Binaries, bin)
	}
	gosource.SortBinaries(bits.Binaries)
	return bits, nil
}

// copyMissing makes the programs that are copies of others and aren't there.
func (p *project) copyMissing(bits *Bits, dir string) error {
	for _, b := range slices.Clone(bits.Binaries) {
		for program, of := range p.copies {
			if b.Name != of || slices.ContainsFunc(bits.Binaries, func(b gosource.Binary) bool { return b.Name == program }) {
				continue
			}
			c := b
			c.Name, c.File, c.From = program, gosource.FileOf(program, gosource.Windows), "a copy of "+b.File
			if err := gosource.CopyFile(filepath.Join(dir, b.File), filepath.Join(dir, c.File)); err != nil {
				return fmt.Errorf("copying %s: %w", b.File, err)
			}
			bits.Binaries = append(bits.Binaries, c)
		}
	}
	return nil
}

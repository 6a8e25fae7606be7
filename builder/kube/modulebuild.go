package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// Fetch compiles the ref's programs with one call of go build, so that what
// they share is compiled once. The whole output of the go command is kept in
// scratch, in go-build.log.
func (s *moduleSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	set := about(s.opts.settings(), s.flag)
	g, err := gosource.NewGoTool(ctx, set)
	if err != nil {
		return Bits{}, err
	}
	b, err := gosource.NewBuild(set, ref, g, scratch, sink)
	if err != nil {
		return Bits{}, err
	}
	defer b.Close()
	b.Root, b.Programs = filepath.Join(scratch, "module"), programsOf(s.opts.targets(s.programs))
	b.Env = g.BuildEnv(os.Environ(), ref.Toolchain)
	if err := s.prepare(ctx, b); err != nil {
		return Bits{}, err
	}
	b.Expect = func(p gosource.Program) Expect { return expectModule(ref, p) }
	bits, err := b.All(ctx, dir)
	if err != nil {
		return Bits{}, err
	}
	return bits, s.opts.tryOut(ctx, bits, dir, true, sink)
}

// prepare writes the outer module. Its go.sum has the digests of the ref, so
// that the go command refuses whatever else a proxy would serve.
func (s *moduleSource) prepare(ctx context.Context, b *gosource.Build) error {
	for _, d := range []string{b.Root, b.Out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return fmt.Errorf("making a folder for the build: %w", err)
		}
	}
	mod, err := s.main(ctx, b.Go, b.Root)
	if err != nil {
		return err
	}
	if want := b.Ref.Inputs[mainModule+"@"+b.Ref.Version]; mod.Sum != want {
		return &fault.Problem{Class: fault.Input, Field: s.flag, Value: b.Ref.Version, Why: "has the digest " + mod.Sum + ", pinned is " + want, Fix: "resolve it anew"}
	}
	t, err := readTree(mod.Dir, b.Ref.Version)
	if err != nil {
		return fmt.Errorf("reading the source of %s: %w", b.Ref.Version, err)
	}
	if err := setFlags(b, t.tags, s.opts); err != nil {
		return err
	}
	gomod, err := t.outerMod(b.Ref.Version)
	if err != nil {
		return err
	}
	gosum, err := os.ReadFile(filepath.Join(mod.Dir, "go.sum"))
	if err != nil {
		return fmt.Errorf("reading go.sum of Kubernetes: %w", err)
	}
	gosum = append(gosum, pinnedSums(b.Ref)...)
	if err := os.WriteFile(filepath.Join(b.Root, "go.mod"), gomod, 0o644); err != nil {
		return fmt.Errorf("writing the module of the build: %w", err)
	}
	if err := os.WriteFile(filepath.Join(b.Root, "go.sum"), gosum, 0o644); err != nil {
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

// expectModule says what a program compiled from modules must prove. That the
// version occurs proves nothing here, since it is part of every module path in
// the binary; the commit and the date are in it only if they were stamped. Where
// neither is known, the version must occur outside of module paths.
func expectModule(ref Ref, p gosource.Program) Expect {
	mod, ver := mainModule, ref.Version
	if p.Name == KubeLogRunner {
		mod, ver = "k8s.io/component-base", stagingVersion(ver)
	}
	e := expectOf(p, ref)
	e.MainVersion, e.MainSum, e.From = ver, ref.Inputs[mod+"@"+ver], "compiled from "+mod+"@"+ver+" with "+ref.Toolchain
	if e.Stamps = stampsOf(ref); e.Stamps == nil {
		e.Standalone = ref.Version
	}
	return e
}

// stampsOf returns the commit and the date, where they are known.
func stampsOf(ref Ref) []string {
	var stamps []string
	for _, s := range []string{ref.Commit, ref.BuildDate} {
		if s != "" {
			stamps = append(stamps, s)
		}
	}
	return stamps
}

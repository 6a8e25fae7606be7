package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// Fetch compiles the ref's programs with one call of go build, so that what
// they share is compiled once. The whole output of the go command is kept in
// scratch, in go-build.log.
func (s *moduleSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	g, err := newGoTool(ctx, s.opts)
	if err != nil {
		return Bits{}, err
	}
	b, err := newBuild(s.flag, ref, g, s.opts, scratch, sink)
	if err != nil {
		return Bits{}, err
	}
	defer b.log.Close()
	b.root, b.targets = filepath.Join(scratch, "module"), targetsOf(s.programs, s.opts.Linux)
	b.env = g.buildEnv(os.Environ(), ref.Toolchain)
	if err := s.prepare(ctx, b); err != nil {
		return Bits{}, err
	}
	b.expect = func(t target, p plan) Expect { return expectModule(ref, t, p) }
	return b.all(ctx, dir)
}

// prepare writes the outer module. Its go.sum has the digests of the ref, so
// that the go command refuses whatever else a proxy would serve.
func (s *moduleSource) prepare(ctx context.Context, b *build) error {
	for _, d := range []string{b.root, b.out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return fmt.Errorf("making a folder for the build: %w", err)
		}
	}
	mod, err := s.main(ctx, b.g, b.root)
	if err != nil {
		return err
	}
	if want := b.ref.Inputs[mainModule+"@"+b.ref.Version]; mod.Sum != want {
		return &fault.Problem{Class: fault.Input, Field: s.flag, Value: b.ref.Version, Why: "has the digest " + mod.Sum + ", pinned is " + want, Fix: "resolve it anew"}
	}
	t, err := readTree(mod.Dir, b.ref.Version)
	if err != nil {
		return fmt.Errorf("reading the source of %s: %w", b.ref.Version, err)
	}
	if err := b.setTags(t.tags); err != nil {
		return err
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

// expectModule says what a program compiled from modules must prove. That the
// version occurs proves nothing here, since it is part of every module path in
// the binary; the commit and the date are in it only if they were stamped. Where
// neither is known, the version must occur outside of module paths. A program
// that has no version package (kube-log-runner) can't be stamped.
func expectModule(ref Ref, t target, p plan) Expect {
	mod, ver := mainModule, ref.Version
	if t.program == KubeLogRunner {
		mod, ver = "k8s.io/component-base", stagingVersion(ver)
	}
	e := Expect{Name: t.program, GOOS: t.goos, MainVersion: ver, MainSum: ref.Inputs[mod+"@"+ver],
		From: "compiled from " + mod + "@" + ver + " with " + ref.Toolchain, GoVersion: ref.Toolchain}
	if t.program != KubeLogRunner || p.stamped[t] {
		e.Stamps = stampsOf(ref)
		if e.Stamps == nil {
			e.Standalone = ref.Version
		}
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

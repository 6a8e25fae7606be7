package component

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// moduleSource compiles a release of containerd from its Go module: no git.
type moduleSource struct {
	*project
	request Request
	opts    Options
}

// modulePath is that of a release.
func (s *moduleSource) modulePath() string { return "github.com/containerd/containerd/v2" }

// Resolve pins the module, the toolchain, the flags and the shim's module.
func (s *moduleSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	g, err := gosource.NewGoTool(ctx, s.opts.settings(s.project))
	if err != nil {
		return Ref{}, err
	}
	m, err := getModule(ctx, g, s.project, "local", s.modulePath(), s.request.Version, nearestTags)
	if err != nil {
		return Ref{}, err
	}
	t, err := s.readTree(gosource.InDir(m.Dir))
	if err != nil {
		return Ref{}, fmt.Errorf("reading the source of %s: %w", m.Version, err)
	}
	ref := Ref{Source: "module", Version: m.Version, TreeState: "clean", Inputs: map[string]string{m.Path + "@" + m.Version: m.Sum}}
	if ref.Commit, ref.BuildDate, err = gosource.ReadInfo(m.Info); err != nil {
		return Ref{}, fmt.Errorf("reading what the module proxy says of %s: %w", m.Version, err)
	}
	if ref.Commit == "" {
		sink.Emit(report.Event{Kind: report.Warning, Message: "the module proxy does not say the commit of containerd " + m.Version + "; containerd.exe won't either"})
	}
	return ref, s.pinBuild(ctx, s.request.Text, t, &ref, s.opts, sink)
}

// Fetch compiles the release as a dependency of a module of ours.
func (s *moduleSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	g, err := gosource.NewGoTool(ctx, s.opts.settings(s.project))
	if err != nil {
		return Bits{}, err
	}
	root := filepath.Join(scratch, "module")
	m, err := outerModule(ctx, g, s.project, ref, s.modulePath(), root)
	if err != nil {
		return Bits{}, err
	}
	t, err := s.readTree(gosource.InDir(m.Dir))
	if err != nil {
		return Bits{}, fmt.Errorf("reading the source of %s: %w", m.Version, err)
	}
	return s.compile(ctx, t, ref, g, job{root: root, env: g.BuildEnv(os.Environ(), ref.Toolchain), modVersion: m.Version, modSum: m.Sum,
		from: "compiled from " + m.Path + "@" + m.Version, dir: dir, scratch: scratch, opts: s.opts, sink: sink})
}

// getModule downloads a module. One that can't be had is a *fault.Problem.
func getModule(ctx context.Context, g *gosource.GoTool, p *project, toolchain, path, version string, nearest func([]string, string) []string) (gosource.Module, error) {
	got, err := g.Download(ctx, os.TempDir(), toolchain, path+"@"+version)
	if err != nil {
		return gosource.Module{}, fmt.Errorf("downloading %s: %w", path, err)
	}
	if got[0].Error == "" {
		return got[0], nil
	}
	problem := &fault.Problem{Class: fault.Network, Field: p.flag, Value: path + "@" + version, Why: "could not be downloaded",
		Err: errors.New(gosource.FirstLine(got[0].Error)), Fix: "check the network and GOPROXY (" + g.User["GOPROXY"] + ")"}
	switch {
	case strings.Contains(got[0].Error, "SECURITY ERROR") || strings.Contains(got[0].Error, "checksum mismatch"):
		problem.Class, problem.Why, problem.Fix = fault.Input, "was refused, since its checksum is not the expected one", "clean the module cache (go clean -modcache) or use another GOPROXY"
		return gosource.Module{}, problem
	case g.Offline():
		problem.Why, problem.Err, problem.Fix = "is not in the module cache, and the network must not be used (--offline, or GOPROXY=off)", nil, "run it once without --offline"
		return gosource.Module{}, problem
	}
	versions, err := g.Versions(ctx, os.TempDir(), path)
	if ctx.Err() != nil {
		return gosource.Module{}, fmt.Errorf("looking for %s: %w", path, ctx.Err())
	}
	if near := nearest(versions, version); err == nil && len(near) > 0 {
		problem.Class, problem.Why, problem.Err, problem.Fix = fault.Input, "does not exist", nil, "the nearest that do: "+strings.Join(near, ", ")
	}
	return gosource.Module{}, problem
}

// outerModule writes a module of ours into root, in which the programs of the
// pinned version of path can be compiled.
func outerModule(ctx context.Context, g *gosource.GoTool, p *project, ref Ref, path, root string) (gosource.Module, error) {
	version := ""
	for name := range ref.Inputs {
		if v, ok := strings.CutPrefix(name, path+"@"); ok {
			version = v
		}
	}
	m, err := getModule(ctx, g, p, ref.Toolchain, path, version, nearestTags)
	if err != nil {
		return m, err
	}
	if want := ref.Inputs[path+"@"+version]; m.Sum != want {
		return m, refuse(p.flag, path+"@"+version, "has the digest "+m.Sum+", pinned is "+want, "resolve it anew")
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return m, fmt.Errorf("making a folder for the build: %w", err)
	}
	return m, gosource.WriteOuterModule(root, m)
}

// shimModule downloads the module of the shim.
func shimModule(ctx context.Context, g *gosource.GoTool, p *project, toolchain, version string) (gosource.Module, error) {
	return getModule(ctx, g, p, toolchain, hcsshim, version, nearestTags)
}

// compileShim compiles the shim of containerd. It carries no version: the
// official build stamps none.
func compileShim(ctx context.Context, p *project, ref Ref, g *gosource.GoTool, j job) (gosource.Binary, error) {
	scratch := filepath.Join(j.scratch, "shim")
	root := filepath.Join(scratch, "module")
	m, err := outerModule(ctx, g, p, ref, hcsshim, root)
	if err != nil {
		return gosource.Binary{}, err
	}
	b, err := gosource.NewBuild(j.opts.settings(p), ref, g, scratch, j.sink)
	if err != nil {
		return gosource.Binary{}, err
	}
	defer b.Close()
	if err := os.MkdirAll(b.Out, 0o755); err != nil {
		return gosource.Binary{}, fmt.Errorf("making a folder for the build: %w", err)
	}
	program := windowsProgram(shimProgram, hcsshim+"/cmd/"+shimProgram)
	b.Root, b.Env, b.Programs, b.Flags = root, g.BuildEnv(os.Environ(), ref.Toolchain), []gosource.Program{program}, recipe{}.flags()
	b.Expect = func(gosource.Program) gosource.Expect {
		return gosource.Expect{Name: shimProgram, Packages: []string{program.Package}, Field: p.flag, GoVersion: ref.Toolchain,
			MainVersion: m.Version, MainSum: m.Sum, From: "compiled from " + hcsshim + "@" + m.Version + " with " + ref.Toolchain}
	}
	bits, err := b.All(ctx, j.dir)
	if err != nil {
		return gosource.Binary{}, err
	}
	return bits.Binaries[0], nil
}

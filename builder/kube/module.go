package kube

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// moduleSource compiles a release from the k8s.io/kubernetes Go module: no
// git, no docker, no make.
type moduleSource struct {
	flag     string // the flag that named the version
	version  string
	programs []string
	opts     Options
}

// buildInputName is the input that stands for the flags of the compile.
const buildInputName = "build-flags"

// Resolve pins the module, the staging modules that it needs, the toolchain
// and the flags. It downloads them into the module cache, but compiles nothing.
func (s *moduleSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	g, err := gosource.NewGoTool(ctx, about(s.opts.settings(), s.flag))
	if err != nil {
		return Ref{}, err
	}
	dir, err := os.MkdirTemp("", "wbox-kube-")
	if err != nil {
		return Ref{}, fmt.Errorf("making a folder for the go command: %w", err)
	}
	defer os.RemoveAll(dir)
	mod, err := s.main(ctx, g, dir)
	if err != nil {
		return Ref{}, err
	}
	t, err := readTree(mod.Dir, s.version)
	if err != nil {
		return Ref{}, &fault.Problem{Class: fault.Input, Field: s.flag, Value: s.version, Why: "has no Kubernetes source that can be compiled", Err: err, Fix: accepted}
	}
	if t.guessed {
		sink.Emit(report.Event{Kind: report.Warning, Message: s.version + " does not say its build tags; using " + strings.Join(t.tags, ",")})
	}
	// A release is built from its tag, so the tree is clean, as in the official build.
	ref := Ref{Source: "module", Version: s.version, TreeState: "clean", Inputs: map[string]string{}}
	if ref.Commit, ref.BuildDate, err = gosource.ReadInfo(mod.Info); err != nil {
		return Ref{}, fmt.Errorf("reading what the module proxy says of %s: %w", s.version, err)
	}
	s.warnUnknown(ref, sink)
	if ref.Toolchain, err = g.Toolchain(ctx, dir, t.pinned, t.golang, sink); err != nil {
		return Ref{}, err
	}
	ref.Inputs[mainModule+"@"+s.version] = mod.Sum
	pinFlags(ref.Inputs, ref, strings.Join(t.tags, ","), s.opts)
	if err := s.pinStaging(ctx, g, dir, t, ref, sink); err != nil {
		return Ref{}, err
	}
	return ref, nil
}

// main downloads the module itself and returns where it lies.
func (s *moduleSource) main(ctx context.Context, g *gosource.GoTool, dir string) (gosource.Module, error) {
	want := mainModule + "@" + s.version
	toolchain := "local"
	for {
		got, err := g.Download(ctx, dir, toolchain, want)
		if err != nil {
			return gosource.Module{}, err
		}
		needs := needsGo(got[0].Error)
		switch {
		case got[0].Error == "":
			return got[0], nil
		case needs == "" || needs == toolchain:
			return gosource.Module{}, s.unavailable(ctx, g, dir, got[0].Error)
		}
		if err := g.Try(ctx, dir, needs); err != nil {
			return gosource.Module{}, &fault.Problem{Class: fault.Host, Field: "go", Value: g.Version, Why: s.version + " needs " + needs + ", which could not be downloaded",
				Fix: "install " + needs + " or newer (https://go.dev/dl)", Err: err}
		}
		toolchain = needs
	}
}

// needsGo reads the toolchain out of the go command's "requires go >= 1.27.0".
func needsGo(text string) string {
	if m := regexp.MustCompile(`requires go >= (1\.\d+(?:\.\d+|rc\d+)?)`).FindStringSubmatch(text); m != nil {
		return "go" + m[1]
	}
	return ""
}

// unavailable explains why the module can't be had: it does not exist, or it
// can't be reached.
func (s *moduleSource) unavailable(ctx context.Context, g *gosource.GoTool, dir, why string) error {
	p := &fault.Problem{Class: fault.Network, Field: s.flag, Value: s.version, Err: fmt.Errorf("%s", gosource.FirstLine(why))}
	if strings.Contains(why, "SECURITY ERROR") || strings.Contains(why, "checksum mismatch") {
		p.Class, p.Why, p.Fix = fault.Input, "was refused, since its checksum is not the expected one", "clean the module cache (go clean -modcache) or use another GOPROXY"
		return p
	}
	versions, err := g.Versions(ctx, dir, mainModule)
	near := strings.Join(nearest(versions, s.version), ", ")
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("looking for %s: %w", s.version, ctx.Err())
	case err == nil && slices.Contains(versions, s.version):
		p.Why, p.Fix = "exists, but the module proxy did not serve it", "try again, or set GOPROXY to another proxy"
	case err == nil:
		p.Class, p.Why, p.Fix, p.Err = fault.Input, "does not exist", "the nearest that do: "+near, nil
	case g.User["GOPROXY"] == "off":
		p.Why, p.Err = "is not in the module cache, and the network must not be used (--offline, or GOPROXY=off)", nil
		p.Fix = "run it once without --offline: it fetches " + mainModule + "@" + s.version + " and what it needs"
	case isNotFound(why):
		p.Class, p.Why, p.Fix = fault.Input, "does not exist, and which versions do can't be listed", "see https://kubernetes.io/releases"
	default:
		p.Why, p.Fix = "could not be looked up, nor can the versions that exist be listed", "check the network and GOPROXY ("+g.User["GOPROXY"]+")"
	}
	return p
}

// isNotFound says whether a module proxy or git answered that there is no such
// version, as opposed to no answer at all.
func isNotFound(why string) bool {
	for _, s := range []string{"404 Not Found", "410 Gone", "unknown revision", "invalid version", "no such file or directory"} {
		if strings.Contains(why, s) {
			return true
		}
	}
	return false
}

// isNotServed says whether a module proxy answered that it has no such module.
func isNotServed(why string) bool {
	for _, s := range []string{"403 Forbidden", "404 Not Found", "410 Gone", "no such file or directory"} {
		if strings.Contains(why, s) {
			return true
		}
	}
	return false
}

// warnUnknown says which version variables stay empty.
func (s *moduleSource) warnUnknown(ref Ref, sink report.Sink) {
	var unknown []string
	if ref.Commit == "" {
		unknown = append(unknown, "commit")
	}
	if ref.BuildDate == "" {
		unknown = append(unknown, "date")
	}
	if unknown != nil {
		sink.Emit(report.Event{Kind: report.Warning,
			Message: "the module proxy does not say the " + strings.Join(unknown, " and the ") + " of " + s.version + "; the binaries won't either"})
	}
}

// pinStaging adds the digests of the staging modules to the ref's inputs. What
// the proxy says it does not have is left out: not every staging module is part of
// our programs, and a compile fails if one is.
func (s *moduleSource) pinStaging(ctx context.Context, g *gosource.GoTool, dir string, t *tree, ref Ref, sink report.Sink) error {
	sv := stagingVersion(s.version)
	want := make([]string, len(t.staging))
	for i, path := range t.staging {
		want[i] = path + "@" + sv
	}
	got, err := g.Download(ctx, dir, ref.Toolchain, want...)
	if err != nil {
		return fmt.Errorf("downloading the staging modules: %w", err)
	}
	for _, m := range got {
		if isNotServed(m.Error) {
			sink.Emit(report.Event{Kind: report.Log, Message: "not served, so not pinned: " + m.Path + "@" + m.Version})
			continue
		}
		if m.Error != "" {
			return &fault.Problem{Class: fault.Network, Field: s.flag, Value: s.version, Why: "needs " + m.Path + " " + m.Version + ", which the module proxy did not serve",
				Err: fmt.Errorf("%s", gosource.FirstLine(m.Error)), Fix: "check the network and GOPROXY (" + g.User["GOPROXY"] + ")"}
		}
		ref.Inputs[m.Path+"@"+m.Version] = m.Sum
	}
	return nil
}

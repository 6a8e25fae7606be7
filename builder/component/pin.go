package component

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/version"
	"os"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// flagsInput is the input that stands for the flags of the compile; the same
// name as Kubernetes' has, since it comes from wbox itself and no lock holds it.
const flagsInput = "build-flags"

// pin makes the ref of a tree: everything that decides the bytes of a compile.
func (p *project) pin(ctx context.Context, value string, f gosource.Facts, read gosource.FileReader, opts Options, sink report.Sink) (Ref, error) {
	t, err := p.readTree(read)
	if err != nil {
		if ctx.Err() != nil {
			return Ref{}, fmt.Errorf("reading the source: %w", ctx.Err())
		}
		return Ref{}, &fault.Problem{Class: fault.Input, Field: p.flag, Value: value, Why: "has no source of " + p.title + " that can be compiled", Err: err,
			Fix: "give a ref or a folder of " + p.title}
	}
	t.facts = f
	ref := f.Ref()
	if ref.Version = p.version(t); ref.Version == "" {
		return Ref{}, refuse(p.flag, value, "does not say its version", "fetch its tags; its files say it otherwise, if none is missing")
	}
	if ref.BuildDate, err = opts.settings(p).BuildDate(f.Time); err != nil {
		return Ref{}, err
	}
	return ref, p.pinBuild(ctx, value, t, &ref, opts, sink)
}

// pinBuild fills in the toolchain, the flags and the shim.
func (p *project) pinBuild(ctx context.Context, value string, t tree, ref *Ref, opts Options, sink report.Sink) error {
	g, err := gosource.NewGoTool(ctx, opts.settings(p))
	if err != nil {
		return err
	}
	pinned := t.pinned
	if pinned == "" && version.Compare(g.Version, t.golang) < 0 {
		pinned = t.golang // no other will do
	}
	if ref.Toolchain, err = g.Toolchain(ctx, os.TempDir(), pinned, t.golang, sink); err != nil {
		return err
	}
	r := p.recipe(t, *ref)
	ref.Inputs[flagsInput] = r.digest(*ref)
	if r.shim == "" {
		if p.name == Containerd {
			return refuse(p.flag, value, "does not say which version of hcsshim its shim comes from", "give a newer one")
		}
		return nil
	}
	m, err := shimModule(ctx, g, p, ref.Toolchain, r.shim)
	if err != nil {
		return err
	}
	ref.Inputs[m.Path+"@"+m.Version] = m.Sum
	return nil
}

// readTree reads what a tree says of itself.
func (p *project) readTree(read gosource.FileReader) (tree, error) {
	data, err := read("go.mod")
	if err != nil {
		return tree{}, err
	}
	mod, err := modfile.ParseLax("go.mod", data, nil)
	if err != nil {
		return tree{}, fmt.Errorf("reading its go.mod: %w", err)
	}
	if mod.Module == nil || mod.Go == nil {
		return tree{}, errors.New("its go.mod names no module or no version of Go")
	}
	t := tree{read: read, module: mod.Module.Mod.Path, golang: "go" + mod.Go.Version}
	if !p.module.MatchString(t.module) {
		return tree{}, errors.New("its module is " + t.module)
	}
	if mod.Toolchain != nil && version.IsValid(mod.Toolchain.Name) {
		t.pinned = mod.Toolchain.Name
	}
	return t, nil
}

// flags are the flags of go build that decide bytes.
func (r recipe) flags() []string {
	var ld strings.Builder
	for _, v := range r.vars {
		ld.WriteString("-X '" + v[0] + "=" + v[1] + "' ")
	}
	return []string{"-trimpath", "-buildvcs=false", "-tags=" + r.tags, "-ldflags=" + ld.String() + "-s -w"}
}

// digest stands for what is compiled and how.
func (r recipe) digest(ref Ref) string {
	all := append(r.flags(), "windows/amd64 GOAMD64=v1 CGO_ENABLED=0", r.shim)
	for _, p := range r.programs {
		all = append(all, p.Name, p.Package)
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

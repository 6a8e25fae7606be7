package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// dirSource takes the programs from a folder, and what the folder lacks from a
// release.
type dirSource struct {
	path string
	opts Options
}

// newDir returns the source of a folder: a source tree, or programs.
func newDir(text string, opts Options) (Source, error) {
	st, err := os.Stat(text)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, versionProblem(field, text, "does not exist", accepted)
	case err != nil:
		return nil, &fault.Problem{Class: fault.Input, Field: field, Value: text, Why: "can't be read", Err: err, Fix: accepted}
	case !st.IsDir():
		return nil, versionProblem(field, text, "is a file, not a folder", "give the folder that holds kubelet.exe")
	}
	if isSourceTree(text) {
		return &checkoutSource{path: text, opts: opts}, nil
	}
	if opts.ControlPlane != "" {
		return nil, versionProblem(field, text, "holds programs for Windows nodes, none of a control plane", "give a source tree, a git ref or a release")
	}
	if opts.Linux || opts.Debug {
		return nil, versionProblem(field, text, "holds programs that are ready: --linux and --debug need the source", "give a source tree, a git ref or a release")
	}
	return &dirSource{path: text, opts: opts}, nil
}

// Resolve verifies and hashes what the folder holds and finds out its version.
// All that is wrong with the folder is reported together.
func (d *dirSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	found, err := d.programs()
	if err != nil {
		return Ref{}, err
	}
	ref := Ref{Source: "dir", Inputs: map[string]string{}}
	var problems []error
	for _, program := range Programs() {
		if file, ok := found[program]; ok {
			bin, err := Verify(filepath.Join(d.path, file), Expect{Name: program})
			if err != nil {
				problems = append(problems, err)
				continue
			}
			ref.Inputs[program+".exe"] = "sha256:" + bin.SHA256
		}
	}
	missing := d.missing(found)
	if err := d.refuseMissing(missing); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return Ref{}, errors.Join(problems...)
	}
	kubelet := filepath.Join(d.path, found[Kubelet])
	if ref.Version, err = d.version(ctx, kubelet, ref.Inputs[Kubelet+".exe"], sink); err != nil {
		return Ref{}, err
	}
	if len(missing) == 0 {
		return ref, nil
	}
	base, err := d.base(missing)
	if err != nil {
		return Ref{}, err
	}
	sink.Emit(report.Event{Kind: report.Note, Message: "compiling from " + base.version + " what the folder lacks: " + strings.Join(exes(missing), ", ")})
	baseRef, err := base.Resolve(ctx, sink)
	if err != nil {
		return Ref{}, err
	}
	ref.Base = &baseRef
	return ref, nil
}

// Fetch copies the ref's programs, checks that they are still the same, and
// compiles those that come from the base.
func (d *dirSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	found, err := d.programs()
	if err != nil {
		return Bits{}, err
	}
	bits := Bits{Ref: ref}
	var missing []string
	for _, program := range Programs() {
		digest, ok := ref.Inputs[program+".exe"]
		if !ok {
			missing = append(missing, program)
			continue
		}
		if found[program] == "" {
			return Bits{}, versionProblem(field, filepath.Join(d.path, program+".exe"), "is gone since the folder was looked at", "run it again")
		}
		from, to := filepath.Join(d.path, found[program]), filepath.Join(dir, program+".exe")
		if err := gosource.CopyFile(from, to); err != nil {
			return Bits{}, fmt.Errorf("copying %s.exe: %w", program, err)
		}
		bin, err := Verify(to, Expect{Name: program, From: from})
		if err != nil {
			return Bits{}, err
		}
		if "sha256:"+bin.SHA256 != digest {
			return Bits{}, versionProblem(field, from, "has changed since the folder was looked at", "run it again when nothing writes to it")
		}
		bits.Binaries = append(bits.Binaries, bin)
	}
	if err := d.opts.tryOut(ctx, bits, dir, false, sink); err != nil {
		return Bits{}, err
	}
	if len(missing) > 0 {
		if ref.Base == nil {
			return Bits{}, d.refuseMissing(missing)
		}
		base := &moduleSource{flag: "--k8s-base", version: ref.Base.Version, programs: missing, opts: d.opts}
		more, err := base.Fetch(ctx, *ref.Base, dir, scratch, sink)
		if err != nil {
			return Bits{}, err
		}
		bits.Binaries = append(bits.Binaries, more.Binaries...)
	}
	gosource.SortBinaries(bits.Binaries)
	return bits, nil
}

// programs returns the names of the files that are the programs. Case does not
// count, as on Windows.
func (d *dirSource) programs() (map[string]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, &fault.Problem{Class: fault.Input, Field: field, Value: d.path, Why: "can't be read", Err: err, Fix: accepted}
	}
	found := map[string]string{}
	for _, e := range entries {
		for _, program := range Programs() {
			if strings.EqualFold(e.Name(), program+".exe") {
				found[program] = e.Name()
			}
		}
	}
	return found, nil
}

func (d *dirSource) missing(found map[string]string) []string {
	return slices.DeleteFunc(Programs(), func(p string) bool { return found[p] != "" })
}

// refuseMissing returns the problem of a folder that lacks programs which
// nothing can fill in, and nil where there is none.
func (d *dirSource) refuseMissing(missing []string) error {
	names := strings.Join(exes(missing), ", ")
	switch {
	case len(missing) == 0:
		return nil
	case slices.Contains(missing, Kubelet):
		return versionProblem(field, d.path, "lacks "+names, "kubelet.exe must be in the folder; what else it lacks comes from a release with --k8s-base v1.37.2")
	case d.opts.Base == "":
		return versionProblem(field, d.path, "lacks "+names, "add them, or take them from a release with --k8s-base v1.37.2")
	}
	_, err := d.base(missing)
	return err
}

// base returns the release that fills in the missing programs.
func (d *dirSource) base(missing []string) (*moduleSource, error) {
	base, err := parseModule("--k8s-base", d.opts.Base, d.opts)
	if err != nil {
		return nil, err
	}
	base.programs = missing
	return base, nil
}

func exes(programs []string) []string {
	var out []string
	for _, p := range programs {
		out = append(out, p+".exe")
	}
	return out
}

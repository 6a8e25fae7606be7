package component

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// dirSource takes programs from a folder.
type dirSource struct {
	*project
	path string
}

// Resolve verifies and hashes what the folder holds. All that is wrong with it
// is reported together.
func (d *dirSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	found, err := d.find(d.path, sink)
	if err != nil {
		return Ref{}, err
	}
	ref := Ref{Source: "dir", Version: versionIn(d.path), Inputs: map[string]string{}}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if ctx.Err() != nil {
			return Ref{}, fmt.Errorf("looking at the programs: %w", ctx.Err())
		}
		bin, err := gosource.Verify(filepath.Join(d.path, found[name]), d.expect(name))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		ref.Inputs[name+".exe"] = "sha256:" + bin.SHA256
	}
	return ref, errors.Join(append(problems, d.missing(found))...)
}

// versionIn is what the file "version" of a folder says, or "".
func versionIn(dir string) string {
	data, err := gosource.ReadSome(filepath.Join(dir, "version"), 256)
	if text := strings.TrimSpace(string(data)); err == nil && regexp.MustCompile(`^v?[0-9][0-9A-Za-z.+-]*$`).MatchString(text) {
		return text
	}
	return ""
}

// Fetch copies the ref's programs and checks that they are still the same.
func (d *dirSource) Fetch(ctx context.Context, ref Ref, dir, _ string, sink report.Sink) (Bits, error) {
	found, err := d.find(d.path, report.Discard)
	if err != nil {
		return Bits{}, err
	}
	bits := Bits{Ref: ref}
	for _, file := range slices.Sorted(maps.Keys(ref.Inputs)) {
		name := strings.TrimSuffix(file, ".exe")
		if found[name] == "" {
			return Bits{}, refuse(d.flag, filepath.Join(d.path, file), "is gone since the folder was looked at", "run it again")
		}
		from, to := filepath.Join(d.path, found[name]), filepath.Join(dir, file)
		if ctx.Err() != nil {
			return Bits{}, fmt.Errorf("copying %s: %w", file, ctx.Err())
		}
		if err := gosource.CopyFile(from, to); err != nil {
			return Bits{}, fmt.Errorf("copying %s: %w", file, err)
		}
		want := d.expect(name)
		want.From = from
		bin, err := gosource.Verify(to, want)
		if err != nil {
			return Bits{}, err
		}
		if "sha256:"+bin.SHA256 != ref.Inputs[file] {
			return Bits{}, refuse(d.flag, from, "has changed since the folder was looked at", "run it again when nothing writes to it")
		}
		bits.Binaries = append(bits.Binaries, bin)
	}
	if err := d.copyMissing(&bits, dir); err != nil {
		return Bits{}, err
	}
	gosource.SortBinaries(bits.Binaries)
	return bits, nil
}

// expect is what a program of a folder must prove.
func (p *project) expect(name string) gosource.Expect {
	e := gosource.Expect{Name: name, Field: p.flag, Foreign: true}
	for _, r := range p.ready {
		if r.name == name {
			e.Match, e.Foreign = r.match, r.match == nil
		}
	}
	return e
}

// find returns the names of the files that are programs, by the programs' names.
// Case does not count, as on Windows.
func (p *project) find(dir string, sink report.Sink) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &fault.Problem{Class: fault.Input, Field: p.flag, Value: dir, Why: "can't be read", Err: err, Fix: "check its permissions"}
	}
	found := map[string]string{}
	var left []string
	for _, e := range entries {
		name, exe := strings.CutSuffix(strings.ToLower(e.Name()), ".exe")
		if !exe {
			continue
		}
		switch program := p.programOf(name); {
		case program == "":
			left = append(left, e.Name())
		case found[program] == "" || name == program: // its own name wins over the other one
			found[program] = e.Name()
		}
	}
	if left != nil {
		sink.Emit(report.Event{Kind: report.Note, Message: p.title + " has no use for " + strings.Join(left, ", ") + " in " + dir + ": not taken"})
	}
	return found, nil
}

// programOf returns the program whose file has a name in lower case, without
// ".exe", or "".
func (p *project) programOf(name string) string {
	for _, r := range p.ready {
		if name == r.name || name == r.aka && r.aka != "" {
			return r.name
		}
	}
	if p.others {
		return name
	}
	return ""
}

// missing is the problem of programs that are not there, nil where there is
// none.
func (d *dirSource) missing(found map[string]string) error {
	var lacks []string
	for _, r := range d.ready {
		if r.required && found[r.name] == "" {
			lacks = append(lacks, r.name+".exe")
		}
	}
	if lacks == nil {
		return nil
	}
	return refuse(d.flag, d.path, "has no "+strings.Join(lacks, ", no "), "give a source tree, or all of "+d.requiredFiles())
}

// requiredFiles lists what a folder must hold, for people.
func (p *project) requiredFiles() string {
	var out []string
	for _, r := range p.ready {
		if r.required {
			out = append(out, r.name+".exe")
		}
	}
	return strings.Join(out, ", ")
}

package component

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// imageSource takes programs out of the layers of a container image that was
// saved to a tar file, as docker save or an OCI layout, or out of the archive of a
// release.
type imageSource struct {
	*project
	path string
	opts Options
}

// Resolve takes the programs out, to a folder that is thrown away, and pins
// them by their digests.
func (s *imageSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	if s.opts.CacheDir != "" {
		if err := os.MkdirAll(s.opts.CacheDir, 0o755); err != nil {
			return Ref{}, fmt.Errorf("making a folder for the image's programs: %w", err)
		}
	}
	dir, err := os.MkdirTemp(s.opts.CacheDir, "image-")
	if err != nil {
		return Ref{}, fmt.Errorf("making a folder for the image's programs: %w", err)
	}
	defer os.RemoveAll(dir)
	src, err := s.open(ctx, dir)
	if err != nil {
		return Ref{}, err
	}
	ref, err := src.Resolve(ctx, sink)
	ref.Source = "image"
	return ref, s.about(dir, err)
}

// Fetch takes the programs out and checks that they are still the same.
func (s *imageSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	src, err := s.open(ctx, scratch)
	if err != nil {
		return Bits{}, err
	}
	bits, err := src.Fetch(ctx, ref, dir, scratch, sink)
	for i := range bits.Binaries {
		bits.Binaries[i].From = s.path
	}
	return bits, errors.Join(s.about(scratch, err), os.RemoveAll(src.path))
}

// open takes the programs out into a new folder in dir.
func (s *imageSource) open(ctx context.Context, dir string) (*dirSource, error) {
	programs := filepath.Join(dir, "programs")
	if err := os.Mkdir(programs, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for the image's programs: %w", err)
	}
	known := func(base string) string {
		for _, r := range s.ready {
			if base == r.name+".exe" || r.aka != "" && base == r.aka+".exe" {
				return base
			}
		}
		return ""
	}
	err := unpackImage(ctx, s.path, programs, dir, known)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading the image: %w", ctx.Err())
		}
		return nil, &fault.Problem{Class: fault.Input, Field: s.flag, Value: s.path, Why: "is refused", Err: err,
			Fix: "give the tar file of a Windows image of " + s.title + " (docker save, or an OCI layout), or a release's archive"}
	}
	return &dirSource{project: s.project, path: programs}, nil
}

// about makes a problem with the folder one with the image.
func (s *imageSource) about(dir string, err error) error {
	var p *fault.Problem
	if !errors.As(err, &p) {
		return err
	}
	told := *p
	if rel, err := filepath.Rel(filepath.Join(dir, "programs"), p.Value); err == nil && filepath.IsLocal(rel) {
		told.Value = s.path
		if rel != "." {
			told.Value += ", " + rel
		}
	}
	return &told
}

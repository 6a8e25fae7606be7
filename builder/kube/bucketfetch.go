package kube

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// maxProgram is how large in bytes a program in an archive may be.
const maxProgram = 1 << 30

// Fetch downloads the ref's files, each checked against what was published of
// it and against what it must be.
func (s *bucketSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	w, err := newWeb(s.opts, s.root(), sink)
	if err != nil {
		return Bits{}, err
	}
	targets := s.opts.targets(Programs())
	found := make([]Binary, len(targets))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(3)
	for i, t := range targets {
		g.Go(func() error {
			var err error
			found[i], err = s.fetchOne(gctx, w, ref, t, dir)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Bits{}, err
	}
	gosource.SortBinaries(found)
	bits := Bits{Ref: ref, Binaries: found}
	return bits, s.opts.tryOut(ctx, bits, dir, true, sink)
}

// fetchOne puts one program into dir.
func (s *bucketSource) fetchOne(ctx context.Context, w *web, ref Ref, t target, dir string) (Binary, error) {
	to := filepath.Join(dir, t.file())
	from, archive := s.origin(ref, t)
	if from == "" {
		return Binary{}, versionProblem(field, s.text, "has no pinned digest of "+t.file(), "resolve it anew")
	}
	name := t.file()
	if archive {
		name = s.opts.archiveOf(t.goos)
	}
	path, err := w.file(ctx, from, name, ref.Inputs)
	if err != nil {
		return Binary{}, err
	}
	if archive {
		from += ", " + s.opts.memberOf(t)
		err = extract(ctx, path, s.opts.memberOf(t), to)
	} else {
		err = gosource.CopyFile(path, to)
	}
	if err != nil {
		return Binary{}, err
	}
	want := Expect{Name: t.program, GOOS: t.goos, GOARCH: t.goarch, From: from}
	if t.program != KubeLogRunner { // it has no version to be stamped with
		want.Standalone = ref.Version
	}
	return Verify(to, want)
}

// origin is the address that a program comes from, and whether that is an
// archive; empty where the ref pins neither.
func (s *bucketSource) origin(ref Ref, t target) (from string, archive bool) {
	has := func(name string) bool {
		return ref.Inputs[name] != "" || ref.Inputs[inputName(name, "sha512")] != ""
	}
	switch {
	case has(t.file()):
		return s.fileURL(ref.Version, t), false
	case has(s.opts.archiveOf(t.goos)):
		return s.base(ref.Version) + "/" + s.opts.archiveOf(t.goos), true
	}
	return "", false
}

// memberOf is the name of a program in its system's archive.
func (o Options) memberOf(t target) string {
	if o.ControlPlane != "" {
		return "kubernetes/server/bin/" + t.file()
	}
	return "kubernetes/node/bin/" + t.file()
}

// extract writes one member of a .tar.gz to a place that doesn't exist yet.
func extract(ctx context.Context, archive, member, to string) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("opening the archive: %w", err)
	}
	defer f.Close()
	bad := func(why string, err error) error {
		return &fault.Problem{Class: fault.Input, Field: field, Value: archive, Why: why, Err: err, Fix: "give another version, or a folder with the programs"}
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return bad("is no .tar.gz archive", err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("reading the archive: %w", ctx.Err())
		case errors.Is(err, io.EOF):
			return bad("lacks "+member, nil)
		case err != nil:
			return bad("is a damaged archive", err)
		case h.Name != member || h.Typeflag != tar.TypeReg:
			continue
		case h.Size > maxProgram:
			return bad(fmt.Sprintf("holds a %s of %d bytes, more than a program can have", member, h.Size), nil)
		}
		out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
		if err != nil {
			return fmt.Errorf("writing %s: %w", member, err)
		}
		_, err = io.Copy(out, r)
		if cerr := out.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			_ = os.Remove(to)
			return bad("could not be unpacked", err)
		}
		return nil
	}
}

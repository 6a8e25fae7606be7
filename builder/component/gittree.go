package component

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// gitSource compiles any commit of any repository of a project.
type gitSource struct {
	*project
	request Request
	remote  string
	opts    Options
}

// Resolve finds the commit, fetching history but no more files than it needs to
// look at, and pins the tree, the toolchain and the flags.
func (s *gitSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	m, err := gosource.OpenMirror(ctx, s.opts.settings(s.project), s.remote, sink)
	if err != nil {
		return Ref{}, err
	}
	commit, err := m.Find(ctx, s.request.Ref)
	if errors.Is(err, gosource.ErrNoRef) {
		return Ref{}, m.Unknown(ctx, s.request.Text, s.request.Ref, nearestTags)
	}
	if err != nil {
		return Ref{}, err
	}
	facts, err := m.Facts(ctx, commit)
	if err != nil {
		return Ref{}, err
	}
	return s.pin(ctx, s.request.Text, facts, m.Read(ctx, commit), s.opts, sink)
}

// Fetch writes the files of the commit into a folder of its own and compiles
// them there. The folder is dropped, the log of the compile stays.
func (s *gitSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	m, err := gosource.OpenMirror(ctx, s.opts.settings(s.project), s.remote, sink)
	if err != nil {
		return Bits{}, err
	}
	return m.At(ctx, s.request.Text, ref, scratch, func(root string) (Bits, error) {
		return s.compileTree(ctx, ref, root, m.From(ref), dir, scratch, s.opts, sink)
	})
}

// nearestTags picks the tags that come right before and after a version, at
// most three of each, in ascending order.
func nearestTags(tags []string, ref string) []string {
	if !semver.IsValid(ref) {
		return nil
	}
	var all []string
	for _, t := range tags {
		if semver.IsValid(t) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, semver.Compare)
	at, _ := slices.BinarySearchFunc(all, ref, semver.Compare)
	return all[max(0, at-3):min(len(all), at+3)]
}

// checkoutSource compiles a source tree that lies in a folder, with whatever the
// user changed in it.
type checkoutSource struct {
	*project
	path string
	opts Options
}

// Resolve pins the files of the folder by their content.
func (c *checkoutSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	facts, err := gosource.CheckoutFacts(ctx, c.opts.settings(c.project), c.path)
	if err != nil {
		return Ref{}, err
	}
	return c.pin(ctx, c.path, facts, gosource.InDir(c.path), c.opts, sink)
}

// Fetch compiles the tree where it lies. That it was not changed meanwhile is
// checked afterwards.
func (c *checkoutSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	return gosource.InPlace(ctx, c.opts.settings(c.project), c.path, ref, dir, scratch, func(root, dir string) (Bits, error) {
		return c.compileTree(ctx, ref, root, "compiled from "+c.path, dir, scratch, c.opts, sink)
	})
}

package builder

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/media"
	"github.com/wbox-dev/wbox/builder/spec"
)

// locateMedia finds the installation medium and picks the edition, without
// the network. What has to be downloaded comes back as Pending.
func (b *Builder) locateMedia(ctx context.Context, r *Resolved, opts ResolveOptions, pinned *lock.Lock) (*media.Pending, error) {
	o := opts.Media
	o.Sink, o.Offline = b.opts.Sink, opts.Offline
	lib, err := media.New(b.store, o)
	if err != nil {
		return nil, err
	}
	want := media.Want{ISO: r.Spec.ISO, Release: r.Spec.Windows, Kind: r.Spec.Edition}
	if opts.Pins.Frozen && pinned != nil {
		want.Digest = pinned.Inputs["iso"].Digest
	}
	// A lock needs the digest alone, which the table has; which images run there,
	// only the medium itself tells.
	want.Named = opts.PlanOnly && opts.Download && len(r.Spec.Preload) == 0
	found, pending, err := lib.Locate(ctx, want)
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return nil, r.use(*found)
	case want.Named && r.useEntry(pending):
		return nil, nil
	case opts.PlanOnly && opts.Pending && !opts.Pins.Frozen:
		r.pending = pending
		r.Edition.Name = unknownEdition(r.Spec)
		return nil, nil
	case opts.PlanOnly && !opts.Download:
		return nil, pending.Problem()
	}
	return pending, nil
}

// download brings the medium that is pending, if one is.
func (r *Resolved) download(ctx context.Context, pending *media.Pending) error {
	if pending == nil {
		return nil
	}
	found, err := pending.Get(ctx)
	if err != nil {
		return err
	}
	return r.use(found)
}

// useEntry takes what the table says of a medium that is not here, and says
// whether it says anything.
func (r *Resolved) useEntry(p *media.Pending) bool {
	e, source, ok := p.Entry()
	if ok {
		r.ISODigest, r.isoSource, r.Media.Size = e.Digest(), source, e.Size
		r.Edition.Name = unknownEdition(r.Spec)
	}
	return ok
}

// unknownEdition names the edition before the medium can tell its name.
func unknownEdition(s *spec.Spec) string {
	return "Windows Server " + s.Windows + " (" + s.Edition + ")"
}

// use takes a medium. Its path becomes absolute: a machine has another folder.
func (r *Resolved) use(f media.Found) (err error) {
	r.Media, r.Edition, r.ISODigest, r.isoSource = f.Media, f.Edition, f.Digest, f.Source
	if r.Media.Path, err = filepath.Abs(f.Media.Path); err != nil {
		return fmt.Errorf("finding the folder of the medium: %w", err)
	}
	return nil
}

// Pending says which medium a build would download, and how many bytes that
// is, 0 where unknown. The name is empty where there is nothing to download.
func (r *Resolved) Pending() (name string, size int64) {
	if r.pending == nil {
		return "", 0
	}
	return r.pending.Name, r.pending.Size
}

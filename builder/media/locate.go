package media

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/fetch"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/report"
)

// Want is the medium that a build asks for.
type Want struct {
	ISO     string // --iso: a file or a URL; empty: from the store or the table
	Release string // 2019, 2022 or 2025
	Kind    string // iso.Core or iso.Desktop
	Digest  string // Optional: "sha256:…" of the medium that a lock pins
	Named   bool   // a medium of the table is wanted for its digest only: neither its licence nor the network matters
}

// Found is a medium, and the edition in it that was asked for.
type Found struct {
	Media   iso.Media
	Edition iso.Edition
	Digest  string // "sha256:…"
	Source  string // a file's name, or a URL
}

// Pending is a medium that must be downloaded.
type Pending struct {
	Name string // for people
	Size int64  // bytes, 0 where unknown

	entry *Entry // of the table, where it is there
	want  Want
	get   func(context.Context) (Item, error)
	fix   string
	lib   *Library
}

// Get downloads the medium. Where a person is asked about a licence, it is now.
func (p *Pending) Get(ctx context.Context) (Found, error) {
	it, err := p.get(ctx)
	if err != nil {
		return Found{}, err
	}
	return found(it, p.want)
}

// Entry is what the table says of the medium, its digest above all, and where
// it comes from; ok is false where the table does not know it.
func (p *Pending) Entry() (e Entry, source string, ok bool) {
	if p.entry == nil {
		return Entry{}, "", false
	}
	if from, err := p.entry.url(p.lib.opts.BaseURL); err == nil {
		return *p.entry, from, true
	}
	return *p.entry, p.entry.Page, true
}

// Problem says that the medium is not here, for those who only plan.
func (p *Pending) Problem() error {
	return &fault.Problem{Class: fault.Input, Field: "--iso", Why: fmt.Sprintf("no medium is in the store yet: a build downloads %s (%s)", p.Name, Bytes(p.Size)), Fix: p.fix}
}

// Locate looks for a medium: the file or URL of w.ISO, else what is in the
// store, else the table. It uses no network: what has to be downloaded comes
// back as Pending, and exactly one of both is set. No medium to be had is a
// *fault.Problem of class Input that says what to do.
func (l *Library) Locate(ctx context.Context, w Want) (*Found, *Pending, error) {
	switch {
	case isURL(w.ISO):
		return l.locateURL(w)
	case w.ISO != "":
		return l.locateFile(ctx, w)
	}
	f, err := l.inStore(w)
	if f != nil || err != nil {
		return f, nil, err
	}
	return l.inTable(ctx, w)
}

// slowToHash is the size, in bytes, from which on hashing takes long enough to
// be told.
const slowToHash = int64(1) << 30

// locateFile is for --iso FILE. Another file is never taken in its place.
func (l *Library) locateFile(ctx context.Context, w Want) (*Found, *Pending, error) {
	m, err := iso.Inspect(ctx, w.ISO)
	if err != nil {
		return nil, nil, err
	}
	e, err := m.Select(w.Release, w.Kind)
	if err != nil {
		return nil, nil, err
	}
	if m.Size >= slowToHash && !l.store.IsKnown(w.ISO) {
		l.opts.Sink.Emit(report.Event{Kind: report.Note, Stage: "iso", Message: fmt.Sprintf("hashing %s (%s); its SHA-256 is remembered", filepath.Base(w.ISO), Bytes(m.Size))})
	}
	digest, _, err := l.store.DigestKnown(ctx, w.ISO)
	if err != nil {
		return nil, nil, fmt.Errorf("hashing the ISO: %w", err)
	}
	return &Found{Media: m, Edition: e, Digest: digest, Source: w.ISO}, nil, nil
}

func (l *Library) locateURL(w Want) (*Found, *Pending, error) {
	bare, digest, err := splitPin(w.ISO)
	if err != nil {
		return nil, nil, err
	}
	if err := checkURL(bare); err != nil {
		return nil, nil, err
	}
	if digest == "" {
		digest = w.Digest
	}
	it, ok, err := l.fromURL(bare, digest)
	if err != nil {
		return nil, nil, err
	}
	if ok {
		f, err := found(it, w)
		return &f, nil, err
	}
	shown := fetch.Redact(bare)
	if l.opts.Offline {
		return nil, nil, &fault.Problem{Class: fault.Input, Field: "--iso", Value: shown, Why: "is not in the store, and --offline forbids to download it",
			Fix: "build once without --offline, or give a file"}
	}
	p := &Pending{Name: shown, want: w, lib: l, fix: "build with it, or give a file",
		get: func(ctx context.Context) (Item, error) { return l.fetchURL(ctx, bare, digest) }}
	if e, ok := l.known(digest); ok {
		p.Size = e.Size
	}
	return nil, p, nil
}

func found(it Item, w Want) (Found, error) {
	e, err := it.Media.Select(w.Release, w.Kind)
	if err != nil {
		return Found{}, err
	}
	return Found{Media: it.Media, Edition: e, Digest: it.Digest, Source: it.Source}, nil
}

// inStore picks the newest fitting ISO of the store, or the pinned one. A
// stand-in is never picked: it has to be asked for with --iso.
func (l *Library) inStore(w Want) (*Found, error) {
	items, err := l.Items()
	if err != nil {
		return nil, err
	}
	var best *Found
	for _, it := range items {
		if it.Media.StandIn != nil {
			continue
		}
		f, err := found(it, w)
		if err != nil {
			continue // of another release
		}
		if w.Digest != "" && f.Digest == w.Digest {
			return &f, nil
		}
		if best == nil || newer(f.Edition.Version(), best.Edition.Version()) {
			best = &f
		}
	}
	if e, ok := l.known(w.Digest); ok && e.Release == w.Release {
		return nil, nil // pinned, and to be had
	}
	return best, nil
}

// inTable picks the entry to download: the pinned one, else the newest of the
// release.
func (l *Library) inTable(ctx context.Context, w Want) (*Found, *Pending, error) {
	var best *Entry
	for _, e := range l.table {
		if e.Release != w.Release || !slices.Contains(e.Editions, w.Kind) {
			continue
		}
		if best == nil || e.Digest() == w.Digest || best.Digest() != w.Digest && newer(e.Version, best.Version) {
			best = &e
		}
	}
	none := &fault.Problem{Class: fault.Input, Field: "--iso", Why: fmt.Sprintf("no Windows Server %s %s medium is in the store", w.Release, w.Kind)}
	if best == nil {
		none.Fix = "get an ISO and run: wbox iso add FILE"
		return nil, nil, none
	}
	e := *best
	p := &Pending{Name: e.Name, Size: e.Size, entry: &e, want: w, lib: l, fix: "get it with: wbox iso fetch " + e.Name + "; or " + byHand(e),
		get: func(ctx context.Context) (Item, error) { return l.fetchEntry(ctx, e) }}
	if w.Named {
		return nil, p, nil
	}
	if err := l.fetchable(e); fault.ClassOf(err) == fault.Usage {
		return nil, nil, err
	} else if err != nil {
		none.Why += ", and " + whyOf(err)
		none.Fix = byHand(e)
		return nil, nil, none
	}
	if err := l.accept(ctx, e, false); fault.ClassOf(err) == fault.Input {
		none.Why += ", and " + whyOf(err)
		none.Fix = fmt.Sprintf("accept it with --accept-eula to download %s (%s), or %s", e.Name, Bytes(e.Size), byHand(e))
		return nil, nil, none
	} else if err != nil {
		return nil, nil, err
	}
	return nil, p, nil
}

// whyOf is a problem in a subordinate clause.
func whyOf(err error) string {
	p := fault.All(err)[0]
	return p.Field + " " + p.Why
}

package images

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// Foreign says what happens to layers that their maker does not let others
// distribute: those of older Windows images. The manifest stays as it is in
// any case.
type Foreign string

// What may happen to such layers.
const (
	KeepURL       Foreign = "keep"   // they are not copied; who pulls the image gets them where the manifest says
	CopyForeign   Foreign = "copy"   // they are copied as all others, for registries and nodes without the internet
	RefuseForeign Foreign = "refuse" // an image with such a layer is refused
)

// CopyOptions say what is copied of an image.
type CopyOptions struct {
	Platforms []Platform // Optional: of an index only these; default all
	Foreign   Foreign    // Optional: default KeepURL
}

// Copied is what a copy did.
type Copied struct {
	Digest    v1.Hash // of what the name stands for now
	Source    v1.Hash // of what the source's name stands for; another one only where platforms were chosen
	Existing  bool    // it was there already, so nothing was done
	Manifests int     // written, indexes included
	Blobs     int     // that it has, distinct ones
	Uploaded  int     // of these
	Mounted   int     // of these: they were in another repository of that registry
	Foreign   int     // layers that stay where they are
	Bytes     int64   // uploaded
}

// copying is one copy under way.
type copying struct {
	c    *Client
	src  Source
	dst  Reference
	opts CopyOptions
	sink report.Sink

	levels [][]Manifest // those that an index leads to, the index's own children first
	blobs  []v1.Descriptor
	total  int64 // bytes of them
	done   atomic.Int64

	mu  sync.Mutex
	res Copied
}

// Copy makes dst stand for what src is, every byte of every manifest the same,
// and asks the registry afterwards whether it does. What is there already is
// not sent, what another repository of that registry has is mounted. The name
// is written last: a copy that is interrupted leaves it as it was.
func (c *Client) Copy(ctx context.Context, src Source, dst Reference, o CopyOptions) (Copied, error) {
	p := &copying{c: c, src: src, dst: dst, opts: o, sink: report.Thin(c.opts.Sink, showEvery)}
	var root Manifest
	err := c.slot(ctx, func() (err error) {
		root, err = p.begin(ctx)
		return err
	})
	if err != nil {
		return p.res, p.because(ctx, err)
	}
	if p.res.Existing {
		return p.res, nil
	}
	if from := referenceOf(src); from == nil || from.Context().Name() != dst.Context().Name() {
		if err := p.content(ctx, root); err != nil {
			return p.res, err
		}
	}
	return p.res, p.because(ctx, c.slot(ctx, func() error { return p.name(ctx, root) }))
}

// begin finds out what is to be copied, or that it is there.
func (p *copying) begin(ctx context.Context) (Manifest, error) {
	have, found, err := p.c.Head(ctx, p.dst)
	if err != nil {
		return Manifest{}, err
	}
	if from := referenceOf(p.src); found && from != nil && len(p.opts.Platforms) == 0 {
		if d, ok, err := p.c.Head(ctx, from); err == nil && ok && d == have {
			p.res.Digest, p.res.Source, p.res.Existing = d, d, true
			return Manifest{}, nil
		}
	}
	whole, err := p.src.Root(ctx)
	if err != nil {
		return Manifest{}, err
	}
	if err := madeFor(ctx, whole, p.src, p.opts.Platforms); err != nil {
		return Manifest{}, err
	}
	root, err := choose(whole, p.src, p.opts.Platforms)
	if err != nil {
		return Manifest{}, err
	}
	p.res.Digest, p.res.Source = root.Digest, whole.Digest
	p.res.Existing = found && root.Digest == have
	if root.Raw == nil && !p.res.Existing { // one platform: its manifest takes the index's place
		return p.src.Manifest(ctx, root.Children[0])
	}
	return root, nil
}

// content brings everything that root leads to into the repository.
func (p *copying) content(ctx context.Context, root Manifest) error {
	if err := p.gather(ctx, root); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, d := range p.blobs {
		g.Go(func() error { return p.c.slot(gctx, func() error { return p.blob(gctx, d) }) })
	}
	if err := g.Wait(); err != nil {
		return p.because(ctx, err)
	}
	for i := len(p.levels) - 1; i >= 0; i-- {
		g, gctx := errgroup.WithContext(ctx)
		for _, m := range p.levels[i] {
			g.Go(func() error {
				return p.c.slot(gctx, func() error {
					return p.c.PutManifest(gctx, p.dst.Context().Digest(m.Digest.String()), m)
				})
			})
		}
		if err := g.Wait(); err != nil {
			return p.because(ctx, err)
		}
		p.res.Manifests += len(p.levels[i])
	}
	return nil
}

// because names the user's own interruption where that is the reason.
func (p *copying) because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("copying to %s: %w", p.dst.Name(), context.Cause(ctx))
	}
	return p.c.explain(err, "image", p.dst.Name())
}

// name writes the name and asks what it stands for.
func (p *copying) name(ctx context.Context, root Manifest) error {
	if err := p.c.PutManifest(ctx, p.dst, root); err != nil {
		return err
	}
	p.res.Manifests++
	got, found, err := p.c.Head(ctx, p.dst)
	switch {
	case err != nil:
		return err
	case !found:
		return &fault.Problem{Class: fault.Failed, Field: "image", Value: p.dst.Name(), Why: "is not there after it was written", Fix: "ask who runs that registry"}
	case got != root.Digest:
		return changed(p.dst, root.Digest.String(), got.String())
	}
	return nil
}

// blob brings one blob into the repository.
func (p *copying) blob(ctx context.Context, d v1.Descriptor) error {
	from := name.Repository{}
	if r := referenceOf(p.src); r != nil {
		from = r.Context()
	}
	how, err := p.c.ensure(ctx, p.dst.Context(), d, from, counting{p.src, p})
	if err != nil {
		return err
	}
	p.mu.Lock()
	switch how {
	case uploaded:
		p.res.Uploaded++
		p.res.Bytes += d.Size
	case mounted:
		p.res.Mounted++
	}
	p.mu.Unlock()
	if how != uploaded {
		p.progress(d.Size)
	}
	return nil
}

// progress tells that some more bytes are there.
func (p *copying) progress(n int64) {
	repo := p.dst.Context().RepositoryStr()
	p.sink.Emit(report.Event{Kind: report.StageProgress, Stage: repo[strings.LastIndex(repo, "/")+1:], Message: "copying " + p.dst.Name(), Done: p.done.Add(n), Total: p.total})
}

// counting is a Source whose blobs tell how far they are read. What is read
// again after a failure is not counted twice.
type counting struct {
	Source
	p *copying
}

// Blob opens a blob.
func (c counting) Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	rc, err := c.Source.Blob(ctx, d)
	if err != nil {
		return nil, err
	}
	return &counted{ReadCloser: rc, p: c.p, size: d.Size}, nil
}

type counted struct {
	io.ReadCloser
	p       *copying
	n, size int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n += int64(n)
	if n > 0 {
		c.p.progress(int64(n))
	}
	return n, err
}

func (c *counted) Close() error {
	if c.n < c.size {
		c.p.done.Add(-c.n)
	}
	return c.ReadCloser.Close()
}

// showEvery is how often progress is told.
const showEvery = 200 * time.Millisecond

// maxChildren bounds what an index may lead to; the largest ones of Kubernetes'
// images have a dozen.
const maxChildren = 500

// gather reads all manifests that root leads to and lists their blobs.
func (p *copying) gather(ctx context.Context, root Manifest) error {
	seen := map[v1.Hash]bool{}
	n := 0
	for level := []Manifest{root}; len(level) > 0; {
		var children []v1.Descriptor
		for _, m := range level {
			for _, d := range m.Blobs {
				if err := p.list(d, seen); err != nil {
					return err
				}
			}
			for _, d := range m.Children {
				if !seen[d.Digest] {
					seen[d.Digest] = true
					children = append(children, d)
				}
			}
		}
		if n += len(children); n > maxChildren {
			return &fault.Problem{Class: fault.Input, Field: "image", Value: p.src.String(), Why: fmt.Sprintf("has an index of more than %d manifests", maxChildren), Fix: "choose some with --platform"}
		}
		next := make([]Manifest, len(children))
		g, gctx := errgroup.WithContext(ctx)
		for i, d := range children {
			g.Go(func() error {
				return p.c.slot(gctx, func() (err error) {
					next[i], err = p.src.Manifest(gctx, d)
					return err
				})
			})
		}
		if err := g.Wait(); err != nil {
			return p.because(ctx, err)
		}
		if len(next) > 0 {
			p.levels = append(p.levels, next)
		}
		level = next
	}
	p.res.Blobs = len(p.blobs)
	return nil
}

// list adds a blob, unless it is there or is not to be copied.
func (p *copying) list(d v1.Descriptor, seen map[v1.Hash]bool) error {
	if seen[d.Digest] {
		return nil
	}
	seen[d.Digest] = true
	if !d.MediaType.IsDistributable() {
		switch p.opts.Foreign {
		case CopyForeign:
		case RefuseForeign:
			return &fault.Problem{Class: fault.Input, Field: "image", Value: p.src.String(), Why: "has a layer that may not be distributed (" + d.Digest.String() + ")",
				Fix: "use --foreign-layers keep or copy, or --platform without windows"}
		default:
			p.res.Foreign++
			return nil
		}
	}
	p.blobs = append(p.blobs, d)
	p.total += d.Size
	return nil
}

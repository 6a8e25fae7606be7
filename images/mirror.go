package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// MirrorOptions say where images are mirrored to, and how.
type MirrorOptions struct {
	To   string // Required: REGISTRY[/PATH], as ParsePrefix returns it
	Copy CopyOptions
	// Instead gives another source of an image that its registry does not have
	// (any more); nil without error where there is none.
	Instead func(ctx context.Context, i Image) (Source, error) // Optional
}

// Mirrored is one name in the mirror.
type Mirrored struct {
	Component string `json:"component"`
	From      string `json:"from"`
	To        string `json:"to"`
	Digest    string `json:"digest"`
	Source    string `json:"sourceDigest"` // another one than Digest only where platforms were chosen
	Existing  bool   `json:"existing"`     // it was there already
	Manifests int    `json:"manifests"`    // written
	Blobs     int    `json:"blobs"`        // that it has
	Uploaded  int    `json:"uploaded"`     // of these
	Mounted   int    `json:"mounted"`      // of these
	Foreign   int    `json:"foreign"`      // layers that stay where they are
	Bytes     int64  `json:"bytes"`        // uploaded
}

// Mirror copies every image to every one of its paths below one prefix. An
// image that can't be copied does not keep the others from it; all problems are
// returned together. Results are in the order of the list.
func (c *Client) Mirror(ctx context.Context, list []Image, o MirrorOptions) ([]Mirrored, error) {
	found := make([][]Mirrored, len(list))
	errs := make([]error, len(list))
	var g errgroup.Group
	g.SetLimit(c.opts.Jobs)
	for i, img := range list {
		g.Go(func() error {
			found[i], errs[i] = c.mirrorOne(ctx, img, o)
			return nil
		})
	}
	_ = g.Wait()
	var out []Mirrored
	for _, f := range found {
		out = append(out, f...)
	}
	if ctx.Err() != nil {
		return out, fmt.Errorf("mirroring: %w", context.Cause(ctx))
	}
	return out, fault.Check(errs...)
}

// mirrorOne copies one image to all of its paths.
func (c *Client) mirrorOne(ctx context.Context, img Image, o MirrorOptions) ([]Mirrored, error) {
	if img.Source == "" {
		return nil, &fault.Problem{Class: fault.Input, Field: "image", Value: img.Asked, Why: "is published nowhere: its version is no release and no CI build", Fix: "build it with wbox images build"}
	}
	ref, err := c.Parse("image", img.Source)
	if err != nil {
		return nil, err
	}
	var out []Mirrored
	var src Source = &once{Source: c.Remote(ref), roots: map[string]Manifest{}}
	for _, path := range img.Paths {
		to, err := c.Parse("--to", o.To+"/"+path)
		if err != nil {
			return out, err
		}
		did, err := c.Copy(ctx, src, to, o.Copy)
		if gone(err, ref.Name()) && o.Instead != nil {
			other, ierr := o.Instead(ctx, img)
			if ierr != nil {
				return out, errors.Join(err, ierr)
			}
			if other != nil {
				c.opts.Sink.Emit(report.Event{Kind: report.Warning, Message: fmt.Sprintf("%s is gone; using %s, which is for one platform", img.Source, other)})
				src = other
				did, err = c.Copy(ctx, src, to, o.Copy)
			}
		}
		if err != nil {
			return out, err
		}
		c.tell(img, to, did)
		out = append(out, Mirrored{Component: img.Component, From: src.String(), To: to.Name(), Digest: did.Digest.String(), Source: did.Source.String(), Existing: did.Existing,
			Manifests: did.Manifests, Blobs: did.Blobs, Uploaded: did.Uploaded, Mounted: did.Mounted, Foreign: did.Foreign, Bytes: did.Bytes})
	}
	return out, nil
}

// tell says what was done with an image.
func (c *Client) tell(img Image, to Reference, did Copied) {
	what := fmt.Sprintf("copied %s: %d manifests, %d blobs mounted, %d sent (%s)", to.Name(), did.Manifests, did.Mounted, did.Uploaded, report.Bytes(did.Bytes))
	if did.Existing {
		what = to.Name() + " is up to date"
	}
	c.opts.Sink.Emit(report.Event{Kind: report.Log, Message: what})
	if did.Foreign > 0 {
		c.opts.Sink.Emit(report.Event{Kind: report.Note, Message: fmt.Sprintf("%d layers of %s stay where their maker has them; --foreign-layers copy mirrors them too", did.Foreign, img.Source)})
	}
}

// gone says whether an image does not exist (any more) at its source, or is no
// longer for everybody.
func gone(err error, source string) bool {
	var p *fault.Problem
	if !errors.As(err, &p) || p.Value != source {
		return false
	}
	var answer *transport.Error
	return errors.Is(p.Err, errAbsent) || errors.As(p.Err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
}

// once is a Source whose manifests are asked for once, for copies to several names.
type once struct {
	Source
	mu    sync.Mutex
	roots map[string]Manifest // by digest; "" is the root
}

func (o *once) Root(ctx context.Context) (Manifest, error) {
	return o.get("", func() (Manifest, error) { return o.Source.Root(ctx) })
}

func (o *once) Manifest(ctx context.Context, d v1.Descriptor) (Manifest, error) {
	return o.get(d.Digest.String(), func() (Manifest, error) { return o.Source.Manifest(ctx, d) })
}

func (o *once) get(key string, ask func() (Manifest, error)) (Manifest, error) {
	o.mu.Lock()
	m, ok := o.roots[key]
	o.mu.Unlock()
	if ok {
		return m, nil
	}
	m, err := ask()
	if err == nil {
		o.mu.Lock()
		o.roots[key] = m
		o.mu.Unlock()
	}
	return m, err
}

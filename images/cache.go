package images

import (
	"context"
	"io"
	"io/fs"
)

// Cache keeps blobs and manifests by their digest, "sha256:…". Implementations are safe
// for concurrent use, in one process and among several.
type Cache interface {
	// Open returns the content of a digest; fs.ErrNotExist where it isn't
	// there. Who reads it checks it.
	Open(ctx context.Context, digest string) (io.ReadCloser, error)
	// Create begins to add content. It appears when the draft is committed.
	Create(ctx context.Context, digest string) (Draft, error)
	// Remove takes out a content that turned out to have another digest.
	Remove(ctx context.Context, digest string) error
}

// Draft is content on its way into a Cache.
type Draft interface {
	io.Writer
	// Commit makes it appear. Whoever wrote it has checked its digest.
	Commit() error
	// Discard drops it; after Commit it does nothing.
	Discard()
}

// NoCache keeps nothing.
func NoCache() Cache { return noCache{} }

type noCache struct{}

func (noCache) Open(context.Context, string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }
func (noCache) Create(context.Context, string) (Draft, error)       { return noDraft{}, nil }
func (noCache) Remove(context.Context, string) error                { return nil }

type noDraft struct{}

func (noDraft) Write(p []byte) (int, error) { return len(p), nil }
func (noDraft) Commit() error               { return nil }
func (noDraft) Discard()                    {}

package images

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"sync"
)

// memCache is a Cache in memory.
type memCache struct {
	mu   sync.Mutex
	data map[string][]byte
	full bool // nothing more can be kept
}

func newMemCache() *memCache { return &memCache{data: map[string][]byte{}} }

func (m *memCache) Open(_ context.Context, digest string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.data[digest]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (m *memCache) Create(_ context.Context, digest string) (Draft, error) {
	return &memDraft{m: m, digest: digest}, nil
}

func (m *memCache) Remove(_ context.Context, digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.data, digest)
	return nil
}

type memDraft struct {
	m      *memCache
	digest string
	b      bytes.Buffer
	over   bool
}

func (d *memDraft) Write(p []byte) (int, error) {
	if d.m.full {
		return 0, errFull
	}
	return d.b.Write(p)
}

func (d *memDraft) Commit() error {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	if !d.over {
		d.m.data[d.digest] = d.b.Bytes()
	}
	d.over = true
	return nil
}

func (d *memDraft) Discard() { d.over = true }

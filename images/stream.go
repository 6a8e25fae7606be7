package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/builder/report"
)

// errContent marks content that is not what its descriptor says.
var errContent = errors.New("the content is another than its digest says")

// errDamaged marks content of the Cache that is wrong; it is fetched anew.
var errDamaged = errors.New("the cached content is damaged")

// maxResumes is how often in a row a download is gone on with that brings
// nothing more.
const maxResumes = 4

// Blob opens a config or layer of a repository: from the Cache where it is
// there. The reader goes on where a connection breaks, ends with an error
// where the content is not what d says, and puts what it has read to the end
// into the Cache.
func (c *Client) Blob(ctx context.Context, repo name.Repository, d v1.Descriptor) (io.ReadCloser, error) {
	if rc, err := c.opts.Cache.Open(ctx, d.Digest.String()); err == nil {
		return &stream{ctx: ctx, rc: rc, d: d, h: sha256.New(), damaged: func() { _ = c.opts.Cache.Remove(ctx, d.Digest.String()) }}, nil
	}
	s := &stream{ctx: ctx, d: d, h: sha256.New(), pause: c.opts.Pause}
	s.open = func(offset int64) (io.ReadCloser, error) { return c.openBlob(ctx, repo, d, offset) }
	rc, err := s.open(0)
	if err != nil {
		return nil, err
	}
	s.rc = rc
	draft, err := c.opts.Cache.Create(ctx, d.Digest.String())
	if err != nil {
		c.warnCache(err)
		draft = noDraft{}
	}
	s.draft, s.warn = draft, c.warnCache
	return s, nil
}

// openBlob asks for a blob from an offset on.
func (c *Client) openBlob(ctx context.Context, repo name.Repository, d v1.Descriptor, offset int64) (io.ReadCloser, error) {
	resp, err := c.do(ctx, repo.Registry, pull(repo), func(scheme string) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address(scheme, repo, "blobs/"+d.Digest.String()), nil)
		if err == nil && offset > 0 {
			req.Header.Set("Range", rangeOf(offset, d))
		}
		return req, err
	})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound && len(d.URLs) > 0 {
		resp.Body.Close()
		if resp, err = c.foreign(ctx, d, offset); err != nil {
			return nil, err
		}
	}
	if err := answered(resp, http.StatusOK, http.StatusPartialContent); err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && offset > 0 { // a server that knows no ranges
		if _, err := io.CopyN(io.Discard, resp.Body, offset); err != nil {
			resp.Body.Close()
			return nil, fmt.Errorf("skipping what is there: %w", err)
		}
	}
	return resp.Body, nil
}

// rangeOf asks for the rest of a blob.
func rangeOf(offset int64, d v1.Descriptor) string {
	return fmt.Sprintf("bytes=%d-%d", offset, d.Size-1)
}

// foreign asks for a layer at the address that its descriptor names.
func (c *Client) foreign(ctx context.Context, d v1.Descriptor, offset int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URLs[0], nil)
	if err != nil {
		return nil, fmt.Errorf("reading the address of a layer: %w", err)
	}
	if offset > 0 {
		req.Header.Set("Range", rangeOf(offset, d))
	}
	return (&http.Client{Transport: c.base}).Do(req)
}

// stream reads a blob and checks it.
type stream struct {
	ctx     context.Context
	open    func(offset int64) (io.ReadCloser, error) // nil: can't be gone on with
	rc      io.ReadCloser
	d       v1.Descriptor
	h       hash.Hash
	n       int64 // bytes so far
	resumes int
	pause   time.Duration
	draft   Draft
	warn    func(error)
	damaged func() // set for content of the Cache
	ended   error
}

// Read reads on. The last bytes are only handed out when the digest was found
// right, so that nobody ever has all of a wrong content.
func (s *stream) Read(p []byte) (int, error) {
	for s.ended == nil {
		k, err := s.rc.Read(p)
		s.took(p[:k])
		switch {
		case s.ctx.Err() != nil:
			s.ended = s.ctx.Err()
		case s.n > s.d.Size:
			s.ended = s.wrong(fmt.Sprintf("it is longer than %d bytes", s.d.Size))
		case s.n == s.d.Size:
			if got := hex.EncodeToString(s.h.Sum(nil)); got != s.d.Digest.Hex {
				s.ended = s.wrong("it has the digest sha256:" + got)
				break
			}
			s.finish()
			s.ended = io.EOF
			return k, nil
		case k > 0: // an error that came with it is told again
			s.resumes = 0
			return k, nil
		case err != nil:
			s.ended = s.resume(err)
		}
	}
	return 0, s.ended
}

// took counts, hashes and keeps what was read.
func (s *stream) took(p []byte) {
	s.n += int64(len(p))
	s.h.Write(p)
	if s.draft == nil {
		return
	}
	if _, err := s.draft.Write(p); err != nil {
		s.warn(err)
		s.draft.Discard()
		s.draft = nil
	}
}

func (s *stream) finish() {
	if s.draft == nil {
		return
	}
	if err := s.draft.Commit(); err != nil {
		s.warn(err)
	}
}

func (s *stream) wrong(why string) error {
	if s.damaged != nil {
		s.damaged()
		return fmt.Errorf("%w: %s", errDamaged, why)
	}
	return fmt.Errorf("%w: %s", errContent, why)
}

// resume opens the content again where it was cut.
func (s *stream) resume(cause error) error {
	if s.open == nil {
		return s.wrong(fmt.Sprintf("it has %d of %d bytes", s.n, s.d.Size))
	}
	cut := errors.Is(cause, io.EOF)
	for s.resumes < maxResumes {
		s.resumes++
		s.rc.Close()
		if err := sleep(s.ctx, s.pause/4); err != nil {
			return err
		}
		rc, err := s.open(s.n)
		if err == nil {
			s.rc = rc
			return nil
		}
		s.rc, cause = io.NopCloser(eof{}), err
	}
	if cut {
		return s.wrong(fmt.Sprintf("it ends after %d of %d bytes", s.n, s.d.Size))
	}
	return fmt.Errorf("reading on after %d of %d bytes: %w", s.n, s.d.Size, cause)
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Close ends reading. What was not read to the end is not kept.
func (s *stream) Close() error {
	if s.draft != nil {
		s.draft.Discard()
	}
	return s.rc.Close()
}

// sleep waits, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// cached returns a manifest of the Cache.
func (c *Client) cached(ctx context.Context, digest string) (Manifest, bool) {
	rc, err := c.opts.Cache.Open(ctx, digest)
	if err != nil {
		return Manifest{}, false
	}
	defer rc.Close()
	raw, err := io.ReadAll(io.LimitReader(rc, maxManifest+1))
	if err != nil {
		return Manifest{}, false
	}
	m, err := ParseManifest(raw, "")
	if err != nil || m.Digest.String() != digest {
		_ = c.opts.Cache.Remove(ctx, digest)
		return Manifest{}, false
	}
	return m, true
}

// keep puts something small into the Cache.
func (c *Client) keep(ctx context.Context, digest string, r io.Reader) {
	draft, err := c.opts.Cache.Create(ctx, digest)
	if err == nil {
		defer draft.Discard()
		if _, err = io.Copy(draft, r); err == nil {
			err = draft.Commit()
		}
	}
	if err != nil {
		c.warnCache(err)
	}
}

// warnCache says once that nothing is kept: a copy needs no cache.
func (c *Client) warnCache(err error) {
	c.cacheWarning.Do(func() {
		c.opts.Sink.Emit(report.Event{Kind: report.Warning, Message: "what is downloaded can't be kept for the next time: " + err.Error()})
	})
}

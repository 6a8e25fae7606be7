package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// outcome is how a blob came to be in a repository.
type outcome int

const (
	present outcome = iota
	mounted
	uploaded
)

// ensure brings a blob into a repository: where the registry has it elsewhere
// by mounting, else from src. from is where src's blobs are, if that is a
// repository. A blob that is on its way into another repository of that registry
// is waited for.
func (c *Client) ensure(ctx context.Context, repo name.Repository, d v1.Descriptor, from name.Repository, src Source) (outcome, error) {
	p := place{repo.RegistryStr(), d.Digest.String()}
	for {
		c.mu.Lock()
		home := c.homes.home(p, repo.RepositoryStr())
		if home == "" && from.RegistryStr() == repo.RegistryStr() {
			home = from.RepositoryStr()
		}
		other := c.homes.uploads[p]
		if home == "" && other == nil {
			other = &upload{done: make(chan struct{})}
			c.homes.uploads[p] = other
			c.mu.Unlock()
			how, err := c.bring(ctx, repo, d, src)
			c.settle(p, repo, other, err)
			return how, err
		}
		c.mu.Unlock()
		if home == repo.RepositoryStr() {
			return present, nil
		}
		if home != "" {
			return c.mountOrSend(ctx, p, repo, d, home, src)
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return present, ctx.Err()
		}
	}
}

// settle tells those who wait that an upload has ended.
func (c *Client) settle(p place, repo name.Repository, u *upload, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.homes.known[p] = append(c.homes.known[p], repo.RepositoryStr())
	}
	delete(c.homes.uploads, p)
	close(u.done)
}

// mountOrSend mounts a blob from a repository that has it; a registry that
// doesn't mount gets it sent.
func (c *Client) mountOrSend(ctx context.Context, p place, repo name.Repository, d v1.Descriptor, home string, src Source) (outcome, error) {
	to, err := c.mount(ctx, repo, d.Digest, home)
	how := mounted
	if err == nil && to != "" {
		how, err = uploaded, c.sendFrom(ctx, repo, d, to, src)
	}
	if err == nil {
		c.mu.Lock()
		c.homes.known[p] = append(c.homes.known[p], repo.RepositoryStr())
		c.mu.Unlock()
	}
	return how, err
}

// bring sends a blob, if it isn't there.
func (c *Client) bring(ctx context.Context, repo name.Repository, d v1.Descriptor, src Source) (outcome, error) {
	there, err := c.hasBlob(ctx, repo, d)
	if err != nil || there {
		return present, err
	}
	return uploaded, c.sendFrom(ctx, repo, d, "", src)
}

// sendFrom uploads a blob of src to an upload that was begun, or to a new one,
// and begins anew where that can help.
func (c *Client) sendFrom(ctx context.Context, repo name.Repository, d v1.Descriptor, to string, src Source) error {
	for try := 1; ; try++ {
		err := c.sendOnce(ctx, repo, d, to, src)
		busy := isBusy(err)
		if err == nil || ctx.Err() != nil || try >= maxTries && !busy || !again(err) {
			return err
		}
		to = ""
		if busy {
			continue // patience holds everybody back
		}
		if err := sleep(ctx, min(c.opts.Pause<<(try-1), longestPause)); err != nil {
			return err
		}
	}
}

func (c *Client) sendOnce(ctx context.Context, repo name.Repository, d v1.Descriptor, to string, src Source) error {
	body, err := src.Blob(ctx, d)
	if err != nil {
		return fmt.Errorf("reading %s of %s: %w", d.Digest, src, err)
	}
	defer body.Close()
	if to == "" {
		if to, err = c.mount(ctx, repo, d.Digest, ""); err != nil {
			return err
		}
	}
	seen := &remembering{r: body}
	err = c.send(ctx, repo, d, to, seen)
	if seen.err != nil { // why the upload was cut, which its own error may hide
		return fmt.Errorf("reading %s of %s: %w", d.Digest, src, seen.err)
	}
	return err
}

// remembering remembers how reading failed.
type remembering struct {
	r   io.Reader
	err error
}

func (r *remembering) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func isBusy(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusTooManyRequests
}

// again says whether an upload that failed may succeed from its beginning on.
func again(err error) bool {
	var answer *transport.Error
	var busy *busyError
	switch {
	case errors.As(err, &busy):
		return false
	case errors.Is(err, errDamaged):
		return true
	case errors.As(err, &answer):
		s := answer.StatusCode
		return s == http.StatusTooManyRequests || s == http.StatusRequestTimeout || s == http.StatusNotFound || s >= 500 // 404: the upload has expired
	}
	return worthwhile(err)
}

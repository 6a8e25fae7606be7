package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/wbox-dev/wbox/builder/fault"
)

// accepted are the types of manifests that we understand.
func accepted() []string {
	return []string{string(types.OCIImageIndex), string(types.DockerManifestList), string(types.OCIManifestSchema1), string(types.DockerManifestSchema2)}
}

// address is a place in a repository's API.
func address(scheme string, repo name.Repository, rest string) string {
	return scheme + "://" + repo.RegistryStr() + "/v2/" + repo.RepositoryStr() + "/" + rest
}

func pull(repo name.Repository) []string { return []string{repo.Scope(transport.PullScope)} }
func push(repo name.Repository) []string { return []string{repo.Scope(transport.PushScope)} }

// errAbsent is a manifest that a registry doesn't have.
var errAbsent = errors.New("the registry does not have it")

// Head asks which digest a reference has; found is false where there is none.
func (c *Client) Head(ctx context.Context, ref Reference) (digest v1.Hash, found bool, err error) {
	resp, err := c.manifestRequest(ctx, http.MethodHead, ref)
	if errors.Is(err, errAbsent) {
		return v1.Hash{}, false, nil
	}
	if err != nil {
		return v1.Hash{}, false, c.explain(err, "image", ref.Name())
	}
	resp.Body.Close()
	if digest, err = v1.NewHash(resp.Header.Get("Docker-Content-Digest")); err == nil {
		return digest, true, nil
	}
	m, err := c.get(ctx, ref) // a registry that doesn't tell
	return m.Digest, err == nil, err
}

// Manifest gets what a reference stands for. One that is asked for by its
// digest is taken from the Cache, if it is there. A reference that does not
// exist is a *fault.Problem of class fault.Input that names the nearest tags.
func (c *Client) Manifest(ctx context.Context, ref Reference) (Manifest, error) {
	if d, ok := ref.(name.Digest); ok {
		if m, ok := c.cached(ctx, d.DigestStr()); ok {
			return m, nil
		}
	}
	m, err := c.get(ctx, ref)
	if err != nil {
		return Manifest{}, err
	}
	c.keep(ctx, m.Digest.String(), bytes.NewReader(m.Raw))
	return m, nil
}

// get asks the registry for a manifest and checks it.
func (c *Client) get(ctx context.Context, ref Reference) (Manifest, error) {
	resp, err := c.manifestRequest(ctx, http.MethodGet, ref)
	if errors.Is(err, errAbsent) {
		return Manifest{}, c.absent(ctx, ref)
	}
	if err != nil {
		return Manifest{}, c.explain(err, "image", ref.Name())
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	if err != nil {
		return Manifest{}, c.explain(fmt.Errorf("reading its manifest: %w", err), "image", ref.Name())
	}
	m, err := ParseManifest(raw, types.MediaType(resp.Header.Get("Content-Type")))
	want := resp.Header.Get("Docker-Content-Digest")
	if d, ok := ref.(name.Digest); ok {
		want = d.DigestStr()
	}
	bad := &fault.Problem{Class: fault.Input, Field: "image", Value: ref.Name(), Fix: "look at what stands between you and that registry"}
	switch {
	case want != "" && m.Digest.String() != want && (err == nil || m.Digest.Hex != ""):
		bad.Why = "was refused: its manifest has the digest " + m.Digest.String() + ", and it should be " + want
		return Manifest{}, bad
	case err != nil:
		bad.Why, bad.Err = "has no manifest that can be read", err
		return Manifest{}, bad
	}
	return m, nil
}

// manifestRequest sends a request about a manifest; errAbsent where there is none.
func (c *Client) manifestRequest(ctx context.Context, method string, ref Reference) (*http.Response, error) {
	resp, err := c.do(ctx, ref.Context().Registry, pull(ref.Context()), func(scheme string) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, method, address(scheme, ref.Context(), "manifests/"+ref.Identifier()), nil)
		if err == nil {
			req.Header["Accept"] = accepted()
		}
		return req, err
	})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound {
		resp.Body.Close()
		return nil, errAbsent
	}
	return resp, answered(resp, http.StatusOK)
}

// answered returns the error that an answer tells, and then closes it.
func answered(resp *http.Response, codes ...int) error {
	err := transport.CheckError(resp, codes...)
	if err != nil {
		resp.Body.Close()
	}
	return err
}

// PutManifest writes a manifest under a reference. Everything that it lists
// must be in that repository.
func (c *Client) PutManifest(ctx context.Context, ref Reference, m Manifest) error {
	resp, err := c.do(ctx, ref.Context().Registry, push(ref.Context()), func(scheme string) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, address(scheme, ref.Context(), "manifests/"+ref.Identifier()), bytes.NewReader(m.Raw))
		if err == nil {
			req.Header.Set("Content-Type", string(m.MediaType))
		}
		return req, err
	})
	if err == nil {
		err = answered(resp, http.StatusOK, http.StatusCreated, http.StatusAccepted)
	}
	if err != nil {
		return c.explain(err, "image", ref.Name())
	}
	resp.Body.Close()
	if got := resp.Header.Get("Docker-Content-Digest"); got != "" && got != m.Digest.String() {
		return changed(ref, m.Digest.String(), got)
	}
	return nil
}

// changed is a registry that has made something else of what it was given.
func changed(ref Reference, want, got string) error {
	return &fault.Problem{Class: fault.Failed, Field: "image", Value: ref.Name(), Why: "has another digest than what was copied: " + got + " instead of " + want,
		Fix: "that registry rewrites manifests; don't use what is there, and use another registry"}
}

// mount makes a blob of another repository of the registry known in repo. A
// registry that won't begins an upload instead and tells its address.
func (c *Client) mount(ctx context.Context, repo name.Repository, d v1.Hash, from string) (upload string, err error) {
	query := ""
	scopes := push(repo)
	if from != "" {
		query = "?" + url.Values{"mount": {d.String()}, "from": {from}}.Encode()
		scopes = append(scopes, "repository:"+from+":"+transport.PullScope)
	}
	resp, err := c.do(ctx, repo.Registry, scopes, func(scheme string) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodPost, address(scheme, repo, "blobs/uploads/"+query), nil)
	})
	if err == nil {
		err = answered(resp, http.StatusCreated, http.StatusAccepted)
	}
	if err != nil {
		return "", err
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusCreated && from != "" {
		return "", nil
	}
	at, err := resp.Location()
	if err != nil {
		return "", fmt.Errorf("beginning an upload: %w", err)
	}
	if at.Host == resp.Request.URL.Host {
		at.Scheme = resp.Request.URL.Scheme // behind a proxy a registry may not know that it has TLS
	}
	return at.String(), nil
}

// hasBlob asks whether a repository has a blob.
func (c *Client) hasBlob(ctx context.Context, repo name.Repository, d v1.Descriptor) (bool, error) {
	resp, err := c.do(ctx, repo.Registry, push(repo), func(scheme string) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodHead, address(scheme, repo, "blobs/"+d.Digest.String()), nil)
	})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return false, nil
	}
	if err := answered(resp, http.StatusOK); err != nil {
		return false, err
	}
	return resp.ContentLength < 0 || resp.ContentLength == d.Size, nil
}

// send uploads a blob's content to the address of a begun upload, in one go.
func (c *Client) send(ctx context.Context, repo name.Repository, d v1.Descriptor, to string, body io.Reader) error {
	u, err := url.Parse(to)
	if err != nil {
		return fmt.Errorf("reading the address of an upload: %w", err)
	}
	query := u.Query()
	query.Set("digest", d.Digest.String())
	u.RawQuery = query.Encode()
	resp, err := c.do(ctx, repo.Registry, push(repo), func(string) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), io.NopCloser(body))
		if err == nil {
			req.ContentLength = d.Size
			req.Header.Set("Content-Type", "application/octet-stream")
			if d.Size == 0 {
				req.Body = http.NoBody
			}
		}
		return req, err
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return transport.CheckError(resp, http.StatusCreated, http.StatusNoContent)
}

package images

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/wbox-dev/wbox/builder/fault"
)

// maxTagList is how long in bytes a list of tags may be: registry.k8s.io has
// thousands on one page.
const maxTagList = 8 << 20

// Tags lists the tags of a repository, as many as its registry puts on one page.
func (c *Client) Tags(ctx context.Context, repo name.Repository) ([]string, error) {
	resp, err := c.do(ctx, repo.Registry, pull(repo), func(scheme string) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, address(scheme, repo, "tags/list?n=10000"), nil)
	})
	if err == nil {
		err = answered(resp, http.StatusOK)
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list struct{ Tags []string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxTagList)).Decode(&list); err != nil {
		return nil, fmt.Errorf("reading the tags of %s: %w", repo.Name(), err)
	}
	return list.Tags, nil
}

// absent explains that a reference does not exist, and names what is near.
func (c *Client) absent(ctx context.Context, ref Reference) error {
	p := &fault.Problem{Class: fault.Input, Field: "image", Value: ref.Name(), Why: "does not exist", Fix: "check its spelling", Err: errAbsent}
	if _, ok := ref.(name.Digest); ok {
		p.Why, p.Err, p.Fix = "is not there", nil, "an index may list what its registry no longer has: use another version, or only some --platform"
		return p
	}
	tags, err := c.Tags(ctx, ref.Context())
	if ctx.Err() != nil {
		return fmt.Errorf("looking for %s: %w", ref.Name(), ctx.Err())
	}
	if err != nil || len(tags) == 0 {
		p.Fix += "; no tags of its repository can be listed"
		return p
	}
	p.Fix = "the nearest tags: " + strings.Join(nearest(tags, ref.Identifier()), ", ")
	return p
}

// nearest returns the tags that look most like want, at most five, the nearest
// first.
func nearest(tags []string, want string) []string {
	type scored struct {
		tag   string
		score int
	}
	all := make([]scored, 0, len(tags))
	for _, t := range tags {
		if strings.HasPrefix(t, "sha256-") || len(t) > 128 { // signatures
			continue
		}
		all = append(all, scored{t, distance(t, want)})
	}
	slices.SortFunc(all, func(a, b scored) int {
		if a.score != b.score {
			return a.score - b.score
		}
		return strings.Compare(b.tag, a.tag)
	})
	var out []string
	for _, s := range all[:min(5, len(all))] {
		out = append(out, s.tag)
	}
	return out
}

// distance counts the letters to insert, remove or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost++
			}
			prev = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

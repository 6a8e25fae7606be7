// Package fetch downloads one file over HTTP so that it appears under its final
// name complete and verified, or not at all. A download that was cut goes on
// where it ended, also in a later process; a server that lies about what it
// sends is found out. It knows URLs and files, neither stores nor media, and
// must not import a capability.
//
// Beside the final name lie, until they have served:
//
//	NAME.part           what has arrived
//	NAME.part.json      from where, and the server's validators
//	NAME.rejected       a whole download with another digest than the pinned one
//	NAME.rejected.json  the same for it
//
// Two processes must not fetch to one name at once: the caller holds a lock.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// Client says how downloads are made. The zero value works; it is safe for
// concurrent use.
type Client struct {
	Transport http.RoundTripper // Optional: default: a transport with the proxy of the environment
	Sink      report.Sink       // Optional: receives progress in bytes, hints and warnings

	Attempts    int           // Optional: tries in a row that bring nothing new before giving up. Default: 5.
	Backoff     time.Duration // Optional: the wait before the second try; doubled each time, at most a minute. Default: 1 s.
	MaxWait     time.Duration // Optional: the longest Retry-After that is waited for. Default: 5 min.
	StallWindow time.Duration // Optional: how long a server may send next to nothing. Default: 30 s.
	MinRate     int64         // Optional: bytes a second that are not "next to nothing". Default: 1024.

	wait func(context.Context, time.Duration) error // tests need not wait
}

// maxTries bounds all tries of one download, those that brought something too.
const maxTries = 500

// defaultLimit bounds what a server may send where no size is known.
const defaultLimit = int64(64) << 30

// Request is one file to download.
type Request struct {
	URL    string // Required: http or https
	Path   string // Required: the final name; its folder must exist
	Digest string // "sha256:" and 64 hexadecimal digits; required, unless TrustFirstUse is set
	Size   int64  // Optional: the exact size in bytes. Default: what the server says.
	Limit  int64  // Optional: refuse more bytes than this. Default: 64 GiB.

	// TrustFirstUse takes what comes where there is no Digest, with a warning
	// that names the digest found.
	TrustFirstUse bool

	Field string // Optional: what errors are about, such as "--iso". Default: "download".
	Name  string // Optional: what progress calls the file. Default: the last part of Path.
	Fix   string // Optional: another way to get the file, for errors that no retry mends.
}

// Result is a finished download.
type Result struct {
	Digest  string // "sha256:…" of the content
	Size    int64  // bytes
	Fetched int64  // bytes that came over the network for it, in this call
	ETag    string // as the server gave it, or empty
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Get downloads r.URL to r.Path. Errors that a user can mend are
// *fault.Problem: class Network where the network or the server fails, Input
// where what the server has is not what was asked for, Host where the file
// can't be written, Usage for a Request that makes no sense. A lack of space
// is never retried. After any error, what has arrived is kept for the next
// call.
func (c *Client) Get(ctx context.Context, r Request) (Result, error) {
	c = c.withDefaults()
	d, err := newDownload(c, r)
	if err != nil {
		return Result{}, err
	}
	defer d.leave()
	if done, err := d.reuse(ctx); done || err != nil {
		return d.result(), err
	}
	if err := d.openPart(ctx); err != nil {
		return Result{}, err
	}
	for {
		if err := d.complete(ctx); err != nil {
			return Result{}, err
		}
		again, err := d.settle(ctx)
		if err != nil {
			return Result{}, err
		}
		if !again {
			return d.result(), nil
		}
	}
}

func (c *Client) withDefaults() *Client {
	d := *c
	if d.Transport == nil {
		d.Transport = NewTransport(TransportConfig{})
	}
	if d.Sink == nil {
		d.Sink = report.Discard
	}
	if d.Attempts == 0 {
		d.Attempts = 5
	}
	if d.Backoff == 0 {
		d.Backoff = time.Second
	}
	if d.MaxWait == 0 {
		d.MaxWait = 5 * time.Minute
	}
	if d.StallWindow == 0 {
		d.StallWindow = 30 * time.Second
	}
	if d.MinRate == 0 {
		d.MinRate = 1024
	}
	if d.wait == nil {
		d.wait = wait
	}
	return &d
}

// newDownload checks the request.
func newDownload(c *Client, r Request) (*download, error) {
	if r.Field == "" {
		r.Field = "download"
	}
	if r.Name == "" {
		r.Name = filepath.Base(r.Path)
	}
	if r.Limit == 0 {
		r.Limit = defaultLimit
	}
	d := &download{Request: r, client: c, total: r.Size}
	bad := func(value, why, fix string) (*download, error) {
		return nil, &fault.Problem{Class: fault.Usage, Field: r.Field, Value: value, Why: why, Fix: fix}
	}
	u, err := url.Parse(r.URL)
	switch {
	case err != nil: // its text may hold a password
		return bad("", "is no URL that can be read", "write it as https://HOST/PATH")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return bad(Redact(r.URL), "is no http or https URL", "write it as https://HOST/PATH")
	case r.Digest == "" && !r.TrustFirstUse:
		return bad(Redact(r.URL), "is not pinned to a SHA-256", "name the digest that the file must have")
	case r.Digest != "" && !digestPattern.MatchString(r.Digest):
		return bad(r.Digest, "is no SHA-256 digest", `write "sha256:" and 64 hexadecimal digits in lower case`)
	case r.Size > r.Limit:
		return bad(Redact(r.URL), fmt.Sprintf("has %d bytes, more than the %d that are allowed", r.Size, r.Limit), r.Fix)
	}
	return d, nil
}

// Redact takes what may be secret out of a URL: passwords, and the values of
// a query, which often are signatures.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(a URL that can't be read)"
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	u.Fragment, u.RawFragment = "", ""
	return u.Redacted()
}

// Digest gives "sha256:" and lower-case digits for a digest as people write
// it, with or without the prefix, or "" for what is none.
func Digest(text string) string {
	d := strings.ToLower(strings.TrimSpace(text))
	if !strings.HasPrefix(d, "sha256:") {
		d = "sha256:" + d
	}
	if !digestPattern.MatchString(d) {
		return ""
	}
	return d
}

// problem is an error about this download.
func (d *download) problem(class fault.Class, why, fix string, err error) *fault.Problem {
	if fix == "" {
		fix = d.Fix
	}
	return &fault.Problem{Class: class, Field: d.Field, Value: Redact(d.URL), Why: why, Fix: fix, Err: err}
}

// wait lets time pass, or the context end.
func wait(ctx context.Context, t time.Duration) error {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// interrupted says whether err is the end of the caller's context.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && !errors.As(err, new(*fault.Problem))
}

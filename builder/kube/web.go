package kube

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/fetch"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// maxText is how long in bytes a marker, a checksum or a list may be.
const maxText = 4 << 20

// How often a server is asked, and the longest wait that it may wish for.
const (
	askTries    = 4
	longestWait = 5 * time.Minute
)

// web reads from the place where builds are published. Texts are read anew
// each time, files are kept by their digest.
type web struct {
	client    *fetch.Client
	off       bool // the network must not be used
	root      string
	dir       string // of the files that are kept
	sink      report.Sink
	transport http.RoundTripper // of short requests; nil: the environment's proxy
	pause     time.Duration     // before the second try
}

// newWeb checks the place that the user named.
func newWeb(opts Options, root string, sink report.Sink) (*web, error) {
	if u, err := url.Parse(root); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" {
		return nil, &fault.Problem{Class: fault.Usage, Field: "--kube-base-url", Value: root, Why: "is no http or https address", Fix: "write it as https://HOST/PATH"}
	}
	if opts.CacheDir == "" {
		return nil, errors.New("there is no folder to keep downloads in")
	}
	w := &web{root: root, dir: filepath.Join(opts.CacheDir, "files"), sink: sink, pause: opts.RetryPause}
	if w.pause == 0 {
		w.pause = time.Second
	}
	w.transport = opts.Transport
	w.client = &fetch.Client{Sink: sink, Backoff: w.pause, Transport: opts.Transport}
	if w.off = opts.Offline; w.off {
		w.client.Transport = fetch.Offline()
	}
	return w, nil
}

// answer is what a server said.
type answer struct {
	status   int
	modified time.Time // zero: not told
	after    time.Duration
	body     string
}

// text reads a short text. The status is told on failure too, 0 where there is none.
func (w *web) text(ctx context.Context, from string) (string, answer, error) {
	a, err := w.ask(ctx, http.MethodGet, from)
	if err != nil {
		return "", a, err
	}
	if a.status != http.StatusOK {
		return "", a, w.refused(from, fmt.Errorf("the server answers %d %s", a.status, http.StatusText(a.status)))
	}
	if what := gosource.Identify([]byte(a.body)); strings.Contains(what, "HTML") {
		return "", a, w.refused(from, fmt.Errorf("the server sends %s", what))
	}
	return strings.TrimSpace(a.body), a, nil
}

// exists asks whether the server has a file.
func (w *web) exists(ctx context.Context, from string) (bool, error) {
	a, err := w.ask(ctx, http.MethodHead, from)
	switch {
	case err != nil:
		return false, err
	case a.status < 300, a.status == http.StatusMethodNotAllowed, a.status == http.StatusNotImplemented:
		return true, nil // a server that can't tell is believed; the download will show
	case a.status == http.StatusNotFound, a.status == http.StatusGone:
		return false, nil
	}
	return false, w.refused(from, fmt.Errorf("the server answers %d %s", a.status, http.StatusText(a.status)))
}

func (w *web) refused(from string, err error) error {
	return &fault.Problem{Class: fault.Network, Field: field, Value: fetch.Redact(from), Why: "could not be read", Err: err, Fix: "check the network, proxies and --kube-base-url (" + w.root + ")"}
}

// ask sends one request, again where the server is busy or breaks off. Any
// other status is an answer.
func (w *web) ask(ctx context.Context, method, from string) (answer, error) {
	if w.off {
		p := fetch.RefuseOffline(fetch.Redact(from))
		p.Field = field
		return answer{}, p
	}
	pause := w.pause
	for try := 1; ; try++ {
		a, err := w.once(ctx, method, from)
		if ctx.Err() != nil {
			return a, fmt.Errorf("asking for %s: %w", fetch.Redact(from), ctx.Err())
		}
		if err == nil && a.status != http.StatusTooManyRequests && a.status < 500 {
			return a, nil
		}
		if err == nil {
			err = fmt.Errorf("the server answers %d %s", a.status, http.StatusText(a.status))
		}
		if try == askTries || a.after > longestWait {
			return a, w.refused(from, err)
		}
		wait := max(pause, a.after)
		w.sink.Emit(report.Event{Kind: report.Note, Message: fmt.Sprintf("%s: %v; trying again in %s", fetch.Redact(from), err, wait)})
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause *= 2
	}
}

// once sends one request and reads the whole answer.
func (w *web) once(ctx context.Context, method, from string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, from, nil)
	if err != nil {
		return answer{}, err
	}
	resp, err := (&http.Client{Transport: w.transport}).Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode}
	if at, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		a.modified = at
	}
	if sec, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && sec > 0 {
		a.after = time.Duration(sec) * time.Second
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxText+1))
	if err == nil && len(body) > maxText {
		err = fmt.Errorf("it is longer than %d bytes", maxText)
	}
	a.body = string(body)
	return a, err
}

// file downloads a file that is pinned by one digest or both, and returns where
// it is kept.
func (w *web) file(ctx context.Context, from, name string, inputs map[string]string) (string, error) {
	pinned, other := inputs[name], inputs[inputName(name, "sha512")]
	id := strings.TrimPrefix(pinned, "sha256:")
	if id == "" {
		id = strings.TrimPrefix(other, "sha512:")
	}
	if len(id) < 64 {
		return "", fmt.Errorf("the digest %q of %s is none", id, name)
	}
	dir := filepath.Join(w.dir, id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for a download: %w", err)
	}
	unlock, err := gosource.WaitForLock(ctx, dir+".lock", nil)
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(dir, name)
	if pinned == "" {
		if has, err := sha512Of(path); err == nil && "sha512:"+has == other {
			return path, nil
		}
	}
	req := fetch.Request{URL: from, Path: path, Digest: pinned, TrustFirstUse: pinned == "", Field: field, Name: name}
	if _, err := w.client.Get(ctx, req); err != nil {
		return "", err
	}
	if other == "" {
		return path, nil
	}
	has, err := sha512Of(path)
	if err != nil {
		return "", fmt.Errorf("checking %s: %w", name, err)
	}
	if "sha512:"+has != other {
		_ = os.Remove(path)
		return "", &fault.Problem{Class: fault.Input, Field: field, Value: fetch.Redact(from), Why: "was refused: it has the digest sha512:" + has + ", published is " + other, Fix: "try again later; if it stays, tell who runs that server"}
	}
	return path, nil
}

func sha512Of(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

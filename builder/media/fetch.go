package media

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/capacity"
	"github.com/wbox-dev/wbox/builder/internal/fetch"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/report"
)

// maxISO bounds a download of unknown size: no medium of Windows is half as
// large.
const maxISO = int64(32) << 30

// Fetch downloads an entry of the table into the store, unless it is there.
// The licence is asked for first, and accepted once an entry.
func (l *Library) Fetch(ctx context.Context, name string) (Item, error) {
	e, err := l.entry(name)
	if err != nil {
		return Item{}, err
	}
	return l.fetchEntry(ctx, e)
}

func (l *Library) entry(name string) (Entry, error) {
	var names []string
	for _, e := range l.table {
		if strings.EqualFold(e.Name, name) {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Entry{}, &fault.Problem{Class: fault.Input, Field: "wbox iso fetch", Value: name, Why: "is not a known medium",
		Fix: "use one of " + strings.Join(names, ", ")}
}

// byHand is how people get a medium without wbox.
func byHand(e Entry) string {
	return fmt.Sprintf("download it (%s) from %s and run: wbox iso add FILE", Bytes(e.Size), e.Page)
}

func (l *Library) fetchEntry(ctx context.Context, e Entry) (Item, error) {
	if it, ok, err := l.item(e.Digest()); err != nil || ok {
		return it, err
	}
	if err := l.fetchable(e); err != nil {
		return Item{}, err
	}
	if err := l.accept(ctx, e, true); err != nil {
		return Item{}, err
	}
	from, err := e.url(l.opts.BaseURL)
	if err != nil {
		return Item{}, err
	}
	return l.download(ctx, e.SHA256, e.Name, fetch.Request{URL: from, Digest: e.Digest(), Size: e.Size, Limit: maxISO, Field: e.Name, Name: e.Name, Fix: byHand(e)})
}

// fetchable says what keeps an entry from being downloaded, beside its licence.
func (l *Library) fetchable(e Entry) error {
	p := &fault.Problem{Class: fault.Input, Field: e.Name, Fix: byHand(e)}
	if l.opts.Offline {
		p.Why = "is not in the store, and --offline forbids to download it"
		return p
	}
	if _, err := e.url(l.opts.BaseURL); err != nil && e.Path != "" {
		return &fault.Problem{Class: fault.Usage, Field: "--iso-base-url", Value: fetch.Redact(l.opts.BaseURL), Err: err, Fix: "write it as https://HOST/PATH"}
	} else if err != nil {
		p.Why = "can't be downloaded by wbox: no address of it is known"
		return p
	}
	return nil
}

// download gets a file into the store. key names it among the downloads, so
// that a later process goes on with it.
func (l *Library) download(ctx context.Context, key, name string, r fetch.Request) (Item, error) {
	var err error
	if r.Path, err = l.store.Download(key); err != nil {
		return Item{}, err
	}
	lock, err := l.store.Lock(ctx, "download-"+key, func() {
		l.opts.Sink.Emit(report.Event{Kind: report.Note, Stage: "iso", Message: "waiting for another process that downloads " + r.Name})
	})
	if err != nil {
		return Item{}, err
	}
	defer lock.Unlock()
	if r.Digest != "" { // the other process may have brought it
		if it, ok, err := l.item(r.Digest); err != nil || ok {
			return it, err
		}
	}
	if err := room(l.store.Root(), r); err != nil {
		return Item{}, err
	}
	got, err := l.client.Get(ctx, r)
	if err != nil {
		return Item{}, err
	}
	if _, err := iso.Inspect(ctx, r.Path); err != nil {
		return Item{}, errors.Join(about(r.Field, source(r.URL), err), os.Remove(r.Path))
	}
	b, err := l.store.Adopt(r.Path, got.Digest)
	if err != nil {
		return Item{}, err
	}
	return l.record(ctx, b, name, source(r.URL))
}

// room refuses a download that the disk can't take.
func room(root string, r fetch.Request) error {
	space, err := capacity.Disk(root)
	if err != nil || r.Size == 0 {
		return nil //nolint:nilerr // what the system doesn't tell is found out by writing
	}
	need := r.Size
	if part, err := os.Stat(r.Path + fetch.PartSuffix); err == nil {
		need -= part.Size()
	}
	if space.Free >= need {
		return nil
	}
	return &fault.Problem{Class: fault.Host, Field: "--store", Value: root, Why: fmt.Sprintf("has %s free, and %s needs %s", Bytes(space.Free), r.Name, Bytes(need)),
		Fix: "make room, or name another folder with --store or WBOX_STORE"}
}

// source is how a URL is recorded: without what may be secret.
func source(raw string) string { return fetch.Redact(raw) }

// urlRecord is what a URL that nobody pinned had.
type urlRecord struct {
	URL     string    `json:"url"` // redacted
	Digest  string    `json:"digest"`
	Fetched time.Time `json:"fetched"`
}

// splitPin takes "#sha256=…" off a URL.
func splitPin(raw string) (bare, digest string, err error) {
	bare, fragment, _ := strings.Cut(raw, "#")
	if fragment == "" {
		return bare, "", nil
	}
	value, ok := strings.CutPrefix(fragment, "sha256=")
	if digest = fetch.Digest(value); !ok || digest == "" {
		return "", "", &fault.Problem{Class: fault.Usage, Field: "--iso", Value: fetch.Redact(bare), Why: "is followed by # and something that pins nothing",
			Fix: "write #sha256= and the 64 hexadecimal digits of the file's SHA-256"}
	}
	return bare, digest, nil
}

// isURL says whether --iso names a URL, good or bad.
func isURL(text string) bool { return strings.Contains(text, "://") }

// checkURL refuses what can't be downloaded before anything is done.
func checkURL(bare string) error {
	u, err := url.Parse(bare)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return &fault.Problem{Class: fault.Usage, Field: "--iso", Value: fetch.Redact(bare), Why: "is no http or https URL",
			Fix: "write it as https://HOST/PATH, or give a file's path"}
	}
	return nil
}

func urlKey(bare string) string {
	sum := sha256.Sum256([]byte(bare))
	return "url-" + hex.EncodeToString(sum[:])
}

func (l *Library) urlPath(bare string) string {
	return filepath.Join(l.dir("media"), urlKey(bare)+".json")
}

// fromURL looks for what a URL had in the store. pinned is the digest of the
// URL's pin or, where that has none, of a lock; both may be empty.
func (l *Library) fromURL(bare, pinned string) (Item, bool, error) {
	digest := pinned
	if digest == "" {
		b, err := os.ReadFile(l.urlPath(bare))
		var r urlRecord
		if err != nil || json.Unmarshal(b, &r) != nil || fetch.Digest(r.Digest) != r.Digest {
			return Item{}, false, nil //nolint:nilerr // never seen
		}
		digest = r.Digest
	}
	return l.item(digest)
}

// fetchURL downloads a URL; without a digest what comes is trusted, once, and
// remembered.
func (l *Library) fetchURL(ctx context.Context, bare, digest string) (Item, error) {
	u, err := url.Parse(bare)
	if err != nil {
		return Item{}, checkURL(bare)
	}
	r := fetch.Request{URL: bare, Digest: digest, TrustFirstUse: digest == "", Limit: maxISO, Field: "--iso", Name: path.Base(u.Path),
		Fix: "download the ISO in another way and run: wbox iso add FILE"}
	if e, ok := l.known(digest); ok {
		r.Size = e.Size
	}
	it, err := l.download(ctx, urlKey(bare), "", r)
	if err != nil || digest != "" {
		return it, err
	}
	return it, l.write(ctx, l.urlPath(bare), urlRecord{URL: source(bare), Digest: it.Digest, Fetched: time.Now().UTC().Truncate(time.Second)})
}

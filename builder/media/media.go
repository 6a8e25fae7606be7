// Package media knows where Windows comes from: a file or a URL that the user
// names, an ISO in the store, or an evaluation medium that is downloaded under
// its licence. Whatever it gives is known by its SHA-256. It must not import
// the builder, a stage or spec, and it starts no machine.
//
// In the store lie, beside the blobs:
//
//	media/<sha256>.json     what an ISO in the store is
//	media/url-<hash>.json   what a URL that nobody pinned had
//	licences/<sha256>.json  which licence was accepted, when and how
package media

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/fetch"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/report"
)

// Options say how media are come by. The zero value uses the network and
// accepts no licence.
type Options struct {
	BaseURL string      // Optional: replaces Host, a mirror say
	Offline bool        // the network must not be used
	Sink    report.Sink // Optional: receives progress and hints
	Table   []Entry     // Optional: default: Table()
	// Optional: what downloads go through; default: the environment's proxy.
	Transport http.RoundTripper

	// Licence is asked whether an entry's licence is accepted, where it was not
	// accepted before. It returns how that was told, such as "--accept-eula",
	// and "" for no. Default: it is not accepted.
	Licence func(context.Context, Entry) (how string, err error)
	// Asks says that Licence asks a person: it is called when all else is well.
	Asks bool
}

// Library is the media of one store. It is safe for concurrent use, and for
// several processes at once.
type Library struct {
	store  *cas.Store
	opts   Options
	table  []Entry
	client *fetch.Client
}

// Open opens the media of the store in a folder, which is made where it does
// not exist.
func Open(root string, o Options) (*Library, error) {
	store, err := cas.Open(root)
	if err != nil {
		return nil, err
	}
	return New(store, o)
}

// New is Open for a store that is open already.
func New(store *cas.Store, o Options) (*Library, error) {
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	l := &Library{store: store, opts: o, table: o.Table, client: &fetch.Client{Sink: report.ForStage(o.Sink, "iso"), Transport: o.Transport}}
	if l.table == nil {
		var err error
		if l.table, err = Table(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Item is an ISO in the store.
type Item struct {
	Name   string    `json:"name"`
	Digest string    `json:"digest"` // "sha256:…"
	Added  time.Time `json:"added"`
	Source string    `json:"source"` // the name of the file it was, or a URL

	Media iso.Media `json:"media"` // its Path is that in the store
}

// Add copies an ISO file into the store, where it is known by its SHA-256.
// name is what people call it; default: the table's name for it, else the
// file's. What is wrong with the file is a *fault.Problem of class Input.
func (l *Library) Add(ctx context.Context, file, name string) (Item, error) {
	m, err := iso.Inspect(ctx, file)
	if err != nil {
		return Item{}, about("wbox iso add", "", err)
	}
	b, err := l.store.AddBlob(ctx, file, l.progress("adding "+filepath.Base(file), m.Size))
	if err != nil {
		return Item{}, err
	}
	return l.record(ctx, b, name, filepath.Base(file))
}

// progress tells how far something is, every 64 MB.
func (l *Library) progress(what string, total int64) func(int64) {
	var next int64
	return func(done int64) {
		if done >= next || done == total {
			next = done + 64<<20
			l.opts.Sink.Emit(report.Event{Kind: report.StageProgress, Stage: "iso", Message: what, Done: done, Total: total})
		}
	}
}

// about makes iso's problems, which are about --iso and a path, ones about
// something else. An empty value keeps the path.
func about(field, value string, err error) error {
	var p *fault.Problem
	if errors.As(err, &p) {
		p.Field = field
		p.Value = cmp.Or(value, p.Value)
	}
	return err
}

// record writes what an ISO in the store is. A name that was given before
// stays, unless there is a new one.
func (l *Library) record(ctx context.Context, b cas.Blob, name, source string) (Item, error) {
	m, err := iso.Inspect(ctx, b.Path)
	if err != nil {
		return Item{}, err
	}
	item := Item{Name: name, Digest: b.Digest, Added: time.Now().UTC().Truncate(time.Second), Source: source, Media: m}
	if old, ok, err := l.item(b.Digest); err == nil && ok {
		if name == "" || name == old.Name {
			return old, nil
		}
		item.Added, item.Source = old.Added, old.Source
	}
	if item.Name == "" {
		item.Name = title(source)
		if e, ok := l.known(b.Digest); ok {
			item.Name = e.Name
		}
	}
	return item, l.write(ctx, l.itemPath(b.Digest), item)
}

// title is what an ISO is called that nobody named: after its file.
func title(source string) string {
	if u, err := url.Parse(source); err == nil && isURL(source) {
		source = path.Base(u.Path)
	}
	return strings.TrimSuffix(strings.TrimSuffix(source, ".iso"), ".ISO")
}

func (l *Library) known(digest string) (Entry, bool) {
	i := slices.IndexFunc(l.table, func(e Entry) bool { return e.Digest() == digest })
	if i < 0 {
		return Entry{}, false
	}
	return l.table[i], true
}

func (l *Library) dir(name string) string { return filepath.Join(l.store.Root(), name) }

func (l *Library) itemPath(digest string) string {
	return filepath.Join(l.dir("media"), strings.TrimPrefix(digest, "sha256:")+".json")
}

func (l *Library) write(ctx context.Context, path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		err = atomicfile.Write(ctx, path, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing into the store: %w", err)
	}
	return nil
}

// item returns what is recorded of a digest, if its blob is there.
func (l *Library) item(digest string) (Item, bool, error) {
	b, ok, err := l.store.Blob(digest)
	if err != nil || !ok {
		return Item{}, false, err
	}
	data, err := os.ReadFile(l.itemPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return Item{}, false, nil
	}
	var it Item
	if err != nil {
		return Item{}, false, fmt.Errorf("reading the store: %w", err)
	}
	if json.Unmarshal(data, &it) != nil || it.Digest != digest || it.Media.Size != b.Size {
		return Item{}, false, nil // damaged: added again, it is mended
	}
	it.Media.Path = b.Path // the store may have been moved
	return it, true, nil
}

// Items lists the ISOs in the store, by name.
func (l *Library) Items() ([]Item, error) {
	blobs, err := l.store.Blobs()
	if err != nil {
		return nil, err
	}
	var out []Item
	for _, b := range blobs {
		it, ok, err := l.item(b.Digest)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, it)
		}
	}
	slices.SortStableFunc(out, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

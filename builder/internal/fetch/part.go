package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/ctxio"
	"github.com/wbox-dev/wbox/builder/report"
)

// The endings of what lies beside the final name.
const (
	PartSuffix     = ".part"
	RejectedSuffix = ".rejected"
	infoSuffix     = ".json"
)

// origin is what is remembered about a part or a rejected file.
type origin struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	Size         int64  `json:"size,omitempty"`   // of the whole file, 0 where the server did not say
	Digest       string `json:"digest,omitempty"` // of a rejected file
}

// validator is what If-Range may carry: a strong ETag, else a date. Empty
// where a resumed file might be of two halves.
func (o origin) validator() string {
	if o.ETag != "" && !strings.HasPrefix(o.ETag, "W/") {
		return o.ETag
	}
	return o.LastModified
}

// download is one Get.
type download struct {
	Request
	client *Client

	part   *os.File
	hash   hash.Hash // of what is in part
	offset int64     // bytes in part
	high   int64     // the largest offset so far
	total  int64     // bytes of the whole file, 0 where unknown
	from   origin    // of what is in part

	whole     bool // the server said that part is all there is
	inherited bool // part may be of two files: begun by an earlier process, or resumed without a validator
	restarted bool // it was thrown away once for that
	rejected  *origin
	fetched   int64 // bytes from the network
	shown     time.Time
}

func (d *download) result() Result {
	return Result{Digest: d.digest(), Size: d.offset, Fetched: d.fetched, ETag: d.from.ETag}
}

func (d *download) digest() string { return "sha256:" + hex.EncodeToString(d.hash.Sum(nil)) }

// reuse looks for a file that has the pinned digest already: under the final
// name, or rejected earlier under another pin.
func (d *download) reuse(ctx context.Context) (bool, error) {
	d.hash = sha256.New()
	if d.Digest == "" {
		return false, nil
	}
	if ok, err := d.matches(ctx, d.Path); ok || err != nil {
		return ok, err
	}
	rejected := d.Path + RejectedSuffix
	if _, err := os.Stat(rejected); err != nil {
		return false, nil //nolint:nilerr // nothing there is no error
	}
	if o, err := readOrigin(rejected); err == nil && o.Digest != d.Digest {
		d.rejected = &o
		return false, nil
	}
	ok, err := d.matches(ctx, rejected)
	if !ok || err != nil {
		return false, err
	}
	d.client.Sink.Emit(report.Event{Kind: report.Note, Message: rejected + " has the digest that is pinned now: nothing needs to be downloaded"})
	if err := atomicfile.Rename(ctx, rejected, d.Path); err != nil {
		return false, d.diskProblem(err)
	}
	return true, removeAll(rejected + infoSuffix)
}

// matches says whether the file at path has the pinned digest. Its hash and
// size are d's then.
func (d *download) matches(ctx context.Context, path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, d.diskProblem(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || d.Size > 0 && info.Size() != d.Size {
		return false, err
	}
	h := sha256.New()
	n, err := io.Copy(h, ctxio.Reader(ctx, f))
	if err != nil {
		return false, fmt.Errorf("hashing %s: %w", path, err)
	}
	if "sha256:"+hex.EncodeToString(h.Sum(nil)) != d.Digest {
		return false, nil
	}
	d.hash, d.offset = h, n
	return true, nil
}

// openPart opens what an earlier process has left, or a new part.
func (d *download) openPart(ctx context.Context) error {
	f, err := os.OpenFile(d.Path+PartSuffix, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return d.diskProblem(err)
	}
	d.part = f
	o, err := readOrigin(d.Path + PartSuffix)
	usable := err == nil && (o.URL == d.URL && o.validator() != "" || d.Digest != "")
	if !usable {
		return d.restart()
	}
	if o.URL != d.URL {
		o = origin{} // a mirror: its validators say nothing about what is here
	}
	n, err := io.Copy(d.hash, ctxio.Reader(ctx, f))
	if err != nil {
		return fmt.Errorf("reading what was downloaded before: %w", err)
	}
	if d.Size > 0 && (n > d.Size || o.Size > 0 && o.Size != d.Size) || n > d.Limit {
		return d.restart()
	}
	d.offset, d.high, d.from, d.inherited = n, n, o, n > 0
	if d.total == 0 {
		d.total = o.Size
	}
	if n > 0 {
		d.client.Sink.Emit(report.Event{Kind: report.Note, Message: fmt.Sprintf("%s: %d bytes are here from an earlier download", d.Name, n)})
	}
	return nil
}

// restart throws away what has arrived.
func (d *download) restart() error {
	if err := d.part.Truncate(0); err != nil {
		return d.diskProblem(err)
	}
	if _, err := d.part.Seek(0, io.SeekStart); err != nil {
		return d.diskProblem(err)
	}
	d.hash.Reset()
	d.offset, d.total, d.from, d.whole, d.inherited = 0, d.Size, origin{}, false, false
	return removeAll(d.Path + PartSuffix + infoSuffix)
}

// settle decides about a complete part: it becomes the file, or is rejected.
// again says that it was thrown away to be downloaded once more.
func (d *download) settle(ctx context.Context) (again bool, err error) {
	got := d.digest()
	if d.Digest != "" && got != d.Digest {
		if d.inherited && !d.restarted {
			d.restarted = true
			d.client.Sink.Emit(report.Event{Kind: report.Warning, Message: d.Name + " was put together from two downloads and has not the pinned digest; downloading it once more from the start"})
			return true, d.restart()
		}
		return false, d.reject(ctx, got)
	}
	if err := d.part.Sync(); err != nil {
		return false, d.diskProblem(err)
	}
	if err := d.close(); err != nil {
		return false, d.diskProblem(err)
	}
	if err := atomicfile.Rename(ctx, d.Path+PartSuffix, d.Path); err != nil {
		return false, d.diskProblem(err)
	}
	if d.Digest == "" {
		d.client.Sink.Emit(report.Event{Kind: report.Warning, Message: Redact(d.URL) + " is not pinned and was trusted on first use; it has the SHA-256 " + strings.TrimPrefix(got, "sha256:")})
	}
	return false, removeAll(d.Path+PartSuffix+infoSuffix, d.Path+RejectedSuffix, d.Path+RejectedSuffix+infoSuffix)
}

// reject keeps a whole download that is not the pinned one: with a mended pin
// it is used without being downloaded again.
func (d *download) reject(ctx context.Context, got string) error {
	rejected := d.Path + RejectedSuffix
	d.from.URL, d.from.Digest, d.from.Size = d.URL, got, d.offset
	if err := d.close(); err != nil {
		return d.diskProblem(err)
	}
	if err := atomicfile.Rename(ctx, d.Path+PartSuffix, rejected); err != nil {
		return d.diskProblem(err)
	}
	if err := writeOrigin(rejected, d.from); err != nil {
		return d.diskProblem(err)
	}
	if err := removeAll(d.Path + PartSuffix + infoSuffix); err != nil {
		return err
	}
	return d.problem(fault.Input, fmt.Sprintf("has the digest %s, not the pinned %s", got, d.Digest),
		"correct the pin if it is wrong: the file is kept as "+rejected+" and is used then without another download", nil)
}

// stillRejected is the error where the server still has the rejected file.
func (d *download) stillRejected() error {
	return d.problem(fault.Input, fmt.Sprintf("was downloaded before and has the digest %s, not the pinned %s; it was not downloaded again", d.rejected.Digest, d.Digest),
		"correct the pin, or remove "+d.Path+RejectedSuffix+" to download it again", nil)
}

// leave closes the part at the end of a Get that failed, and removes it where
// it has nothing.
func (d *download) leave() {
	if d.part == nil {
		return
	}
	empty := d.offset == 0
	if d.close() == nil && empty {
		_ = removeAll(d.Path+PartSuffix, d.Path+PartSuffix+infoSuffix) // an empty part does no harm
	}
}

// close closes the part; it is harmless to call it twice.
func (d *download) close() error {
	if d.part == nil {
		return nil
	}
	f := d.part
	d.part = nil
	return f.Close()
}

func readOrigin(path string) (origin, error) {
	var o origin
	b, err := os.ReadFile(path + infoSuffix)
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(b, &o)
}

// writeOrigin need not be atomic: what can't be read makes the part start
// again.
func writeOrigin(path string, o origin) error {
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path+infoSuffix, b, 0o644)
}

// removeAll removes files that may be missing.
func removeAll(paths ...string) error {
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

package cas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/capacity"
	"github.com/wbox-dev/wbox/builder/internal/ctxio"
)

// Blob is a file in the store that is known by its content.
type Blob struct {
	Digest string // "sha256:…"
	Path   string
	Size   int64 // bytes
}

var blobName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// blobDir and downloadDir are made when they are first needed.
func (s *Store) blobDir() string { return filepath.Join(s.root, "blobs", "sha256") }

// Download returns the path to which a download called name is fetched before
// it becomes a blob by Adopt. The folder is made; what is left there of a
// download that was cut is gone on with by the next one of that name.
func (s *Store) Download(name string) (string, error) {
	dir := filepath.Join(s.root, "downloads")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", unwritable(s.root, err)
	}
	return filepath.Join(dir, name), nil
}

// blobPath is where a digest's blob is, whether it exists or not.
func (s *Store) blobPath(digest string) (string, error) {
	name, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || !blobName.MatchString(name) {
		return "", fmt.Errorf("%q is no digest of a blob", digest)
	}
	return filepath.Join(s.blobDir(), name), nil
}

// Blob returns the blob of a digest, "sha256:…". Contents are rehashed by
// VerifyBlob, not by every lookup; the error is for a store that can't be read.
func (s *Store) Blob(digest string) (Blob, bool, error) {
	path, err := s.blobPath(digest)
	if err != nil {
		return Blob{}, false, err
	}
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.Mode().IsRegular() {
		return Blob{}, false, nil
	}
	if err != nil {
		return Blob{}, false, fmt.Errorf("looking for a blob: %w", err)
	}
	return Blob{digest, path, fi.Size()}, true, nil
}

// Blobs lists all blobs, by digest.
func (s *Store) Blobs() ([]Blob, error) {
	entries, err := os.ReadDir(s.blobDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the blobs: %w", err)
	}
	var out []Blob
	for _, e := range entries {
		if !blobName.MatchString(e.Name()) {
			continue
		}
		b, ok, err := s.Blob("sha256:" + e.Name())
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, b)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Digest < out[j].Digest })
	return out, nil
}

// VerifyBlob hashes a blob again. A blob with another content is a
// *fault.Problem of class fault.Failed; it stays where it is.
func (s *Store) VerifyBlob(ctx context.Context, digest string) error {
	b, ok, err := s.Blob(digest)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("there is no blob %s", digest)
	}
	got, _, err := DigestFile(ctx, b.Path)
	if err != nil {
		return err
	}
	if got != digest {
		return &fault.Problem{Class: fault.Failed, Field: "blob", Value: b.Path, Why: "has changed: its content has the digest " + got,
			Fix: "remove the file; it is added or downloaded again when it is needed"}
	}
	return nil
}

// RemoveBlob removes a blob, if it is there.
func (s *Store) RemoveBlob(digest string) error {
	path, err := s.blobPath(digest)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); errors.Is(err, fs.ErrNotExist) { // Windows removes no read-only file
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a blob: %w", err)
	}
	return nil
}

// AddBlob puts a copy of the file at path into the store and hashes it, both
// in one pass; where the file system can share the content (a reflink), no
// space is taken. A hard link is never made: what happens to the user's file
// would happen to the blob. done, which may be nil, is told the bytes so far.
// A full disk is a *fault.Problem of class fault.Host.
func (s *Store) AddBlob(ctx context.Context, path string, done func(int64)) (Blob, error) {
	src, err := os.Open(path)
	if err != nil {
		return Blob{}, err
	}
	defer src.Close()
	draft, err := s.beginBlob()
	if err != nil {
		return Blob{}, s.blobProblem(err)
	}
	defer draft.discard()
	dst, err := os.OpenFile(draft.file(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Blob{}, s.blobProblem(err)
	}
	digest, err := copyHashed(ctx, dst, src, done)
	if err == nil {
		err = dst.Sync()
	}
	if err := errors.Join(err, dst.Close()); err != nil {
		return Blob{}, s.blobProblem(fmt.Errorf("copying into the store: %w", err))
	}
	return s.Adopt(draft.file(), digest)
}

// Adopt moves a finished, flushed file of the store's own file system, whose
// digest the caller has checked, to its place as a blob and seals it. Where
// the blob is there already, the file is removed.
func (s *Store) Adopt(file, digest string) (Blob, error) {
	path, err := s.blobPath(digest)
	if err != nil {
		return Blob{}, err
	}
	if err := os.MkdirAll(s.blobDir(), 0o755); err != nil {
		return Blob{}, unwritable(s.root, err)
	}
	fi, err := os.Stat(file)
	if err != nil {
		return Blob{}, err
	}
	if b, ok, err := s.Blob(digest); err != nil || ok && b.Size == fi.Size() {
		return b, errors.Join(err, os.Remove(file))
	}
	if err := os.Chmod(file, 0o444); err != nil {
		return Blob{}, err
	}
	// What is there has another size, so it is damaged, or has just come from
	// another process. Windows replaces neither a sealed file nor one that is open.
	if err := os.Rename(file, path); err != nil {
		if b, ok, seen := s.Blob(digest); seen == nil && ok && b.Size == fi.Size() {
			return b, os.Remove(file)
		}
		if err := errors.Join(s.RemoveBlob(digest), os.Rename(file, path)); err != nil {
			return Blob{}, fmt.Errorf("moving a blob into the store: %w", err)
		}
	}
	return Blob{digest, path, fi.Size()}, atomicfile.SyncDir(s.blobDir())
}

// copyHashed copies src to dst, and returns the digest of what was copied.
// Runs of zeros become holes: media that people make have long ones.
func copyHashed(ctx context.Context, dst, src *os.File, done func(int64)) (string, error) {
	h := sha256.New()
	cloned := clone(dst, src) == nil
	from := src
	if cloned {
		from = dst
		if _, err := dst.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
	}
	buf := make([]byte, 1<<20)
	var n int64
	for {
		k, err := io.ReadFull(ctxio.Reader(ctx, from), buf)
		h.Write(buf[:k])
		if !cloned {
			if err := writeOrSkip(dst, buf[:k], n); err != nil {
				return "", err
			}
		}
		n += int64(k)
		if done != nil && k > 0 {
			done(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	if !cloned {
		if err := dst.Truncate(n); err != nil {
			return "", err
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func writeOrSkip(dst *os.File, b []byte, at int64) error {
	for _, c := range b {
		if c != 0 {
			_, err := dst.WriteAt(b, at)
			return err
		}
	}
	return nil
}

// blobDraft is a folder in which a blob is made. Its lock is taken before the
// folder is made and dies with the process; then the folder may be swept.
type blobDraft struct {
	dir  string
	lock *Lock
}

const (
	blobTemp  = ".tmp-"
	blobSlots = 64 // blobs that may be made at once; each slot leaves an empty lock file
)

func blobLock(slot string) string { return "blob-" + slot }

func (s *Store) beginBlob() (*blobDraft, error) {
	if err := os.MkdirAll(s.blobDir(), 0o755); err != nil {
		return nil, unwritable(s.root, err)
	}
	for i := range blobSlots {
		slot := strconv.Itoa(i)
		l, err := s.TryLock(blobLock(slot))
		if err != nil {
			return nil, err
		}
		if l == nil {
			continue
		}
		dir, err := os.MkdirTemp(s.blobDir(), blobTemp+slot+"-")
		if err != nil {
			l.Unlock()
			return nil, err
		}
		return &blobDraft{dir, l}, nil
	}
	return nil, fmt.Errorf("%d files are being added to the store at once", blobSlots)
}

func (d *blobDraft) file() string { return filepath.Join(d.dir, "blob") }

func (d *blobDraft) discard() {
	_ = removeSealed(d.dir) // what is left is swept
	d.lock.Unlock()
}

// SweepBlobs removes what processes that died have left of blobs.
func (s *Store) SweepBlobs() error {
	entries, err := os.ReadDir(s.blobDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("listing the blobs: %w", err)
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), blobTemp)
		if !ok {
			continue
		}
		slot, _, _ := strings.Cut(rest, "-")
		l, err := s.TryLock(blobLock(slot))
		if err != nil || l == nil {
			continue
		}
		err = removeSealed(filepath.Join(s.blobDir(), e.Name()))
		l.Unlock()
		if err != nil {
			return fmt.Errorf("sweeping the store: %w", err)
		}
	}
	return nil
}

// blobProblem words a lack of space.
func (s *Store) blobProblem(err error) error {
	if !capacity.IsFull(err) {
		return err
	}
	return full(s.root, err)
}

func full(root string, err error) error {
	return &fault.Problem{Class: fault.Host, Field: "--store", Value: root, Why: "its disk is full", Err: err,
		Fix: "make room, or name another folder with --store or WBOX_STORE"}
}

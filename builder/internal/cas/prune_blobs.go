package cas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// blobUse is the name under which a blob is held, see Hold.
func blobUse(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// HoldBlob is Hold for a blob. A digest that is no blob's is nothing to hold.
func (s *Store) HoldBlob(ctx context.Context, digest string) error {
	if !digestLike(digest) {
		return nil
	}
	if _, ok, err := s.Blob(digest); err != nil || !ok {
		return err
	}
	return s.Hold(ctx, blobUse(digest))
}

// TouchBlob records that a blob is used now; see Touch.
func (s *Store) TouchBlob(digest string) {
	if digestLike(digest) {
		s.Touch(blobUse(digest))
	}
}

// damagedBlob is the beginning of the name that a damaged blob gets.
const damagedBlob = ".damaged-"

// blobUsed returns when a blob was used last.
func (s *Store) blobUsed(b Blob) (time.Time, error) {
	fi, err := os.Stat(b.Path)
	if err != nil {
		return time.Time{}, err
	}
	return s.used(blobUse(b.Digest), fi.ModTime()), nil
}

// downloadWorth is what a byte of a download costs in seconds, at 5 MB/s.
const downloadWorth = 1.0 / 5e6

// blobCandidates lists the blobs. One that a result was made of counts as used
// when that was.
func (p *pruning) blobCandidates() ([]*candidate, error) {
	blobs, err := p.Blobs()
	if err != nil {
		return nil, err
	}
	usedBy := map[string]time.Time{}
	for key, e := range p.entries {
		var doc struct {
			Inputs map[string]string `json:"inputs"`
		}
		if json.Unmarshal(e.Doc, &doc) != nil {
			continue
		}
		for _, digest := range doc.Inputs {
			if u := p.byKey[key].Used; u.After(usedBy[digest]) {
				usedBy[digest] = u
			}
		}
	}
	var out []*candidate
	for _, b := range blobs {
		used, err := p.blobUsed(b)
		if err != nil {
			continue // removed meanwhile
		}
		if u := usedBy[b.Digest]; u.After(used) {
			used = u
		}
		out = append(out, &candidate{Removed: Removed{Kind: RemovedBlob, Name: b.Digest, Size: b.Size, Used: used}, worth: downloadWorth, remove: p.removeBlob})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Used.After(out[j].Used) })
	for i := range out {
		out[i].keep = i < p.limits.KeepLast
	}
	return out, nil
}

func (p *pruning) removeBlob(c *candidate, dry bool) (bool, error) {
	use := blobUse(c.Name)
	_, err := os.Stat(p.usePath(use))
	unused := errors.Is(err, fs.ErrNotExist)
	l, err := p.TryLock(use + useSuffix)
	if err != nil || l == nil {
		return false, err
	}
	defer l.Unlock()
	if unused {
		p.touchAt(use, c.Used)
	}
	if p.used(use, c.Used).After(c.Used) {
		return false, nil
	}
	if dry {
		return true, nil
	}
	return true, p.RemoveBlob(c.Name)
}

// downloadCandidates lists what cut downloads have left.
func (p *pruning) downloadCandidates() ([]*candidate, error) {
	dir := filepath.Join(p.root, "downloads")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the downloads: %w", err)
	}
	var out []*candidate
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		out = append(out, &candidate{Removed: Removed{Kind: RemovedDownload, Name: e.Name(), Size: fi.Size(), Used: fi.ModTime()}, worth: downloadWorth, remove: p.removeDownload})
	}
	return out, nil
}

func (p *pruning) removeDownload(c *candidate, dry bool) (bool, error) {
	name, _, _ := strings.Cut(c.Name, ".") // "NAME.part" and what else lies beside it
	l, err := p.TryLock("download-" + name)
	if err != nil || l == nil {
		return false, err
	}
	defer l.Unlock()
	if dry {
		return true, nil
	}
	err = os.Remove(filepath.Join(p.root, "downloads", c.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// blobLeftovers removes what processes that died have left of blobs, and
// blobs that were found damaged. With dry set it only lists them.
func (s *Store) blobLeftovers(dry bool) ([]Removed, error) {
	was, err := s.listBlobLeftovers()
	if err != nil || dry {
		return was, err
	}
	if err := s.SweepBlobs(); err != nil {
		return nil, err
	}
	var out []Removed
	for _, r := range was {
		path := filepath.Join(s.blobDir(), r.Name)
		if strings.HasPrefix(r.Name, damagedBlob) {
			if err := removeSealed(path); err != nil {
				return out, fmt.Errorf("sweeping the store: %w", err)
			}
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			out = append(out, r)
		}
	}
	return out, nil
}

func (s *Store) listBlobLeftovers() ([]Removed, error) {
	entries, err := os.ReadDir(s.blobDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the blobs: %w", err)
	}
	var out []Removed
	for _, e := range entries {
		r := Removed{Kind: RemovedLeftover, Name: e.Name(), Why: "left by a process that died"}
		switch rest, temp := strings.CutPrefix(e.Name(), blobTemp); {
		case temp:
			slot, _, _ := strings.Cut(rest, "-")
			l, err := s.TryLock(blobLock(slot))
			if err != nil || l == nil {
				continue
			}
			l.Unlock()
		case strings.HasPrefix(e.Name(), damagedBlob):
			r.Why = "a damaged blob"
		default:
			continue
		}
		if r.Size, err = treeSize(filepath.Join(s.blobDir(), e.Name())); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// VerifyBlobs rehashes every blob. One with another content than its name says
// is moved out of the way, so that nobody takes it. looked is called after each.
func (s *Store) VerifyBlobs(ctx context.Context, looked func(Blob)) (bytes int64, damage []Damage, err error) {
	blobs, err := s.Blobs()
	if err != nil {
		return 0, nil, err
	}
	for _, b := range blobs {
		got, n, err := DigestFile(ctx, b.Path)
		bytes += n
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case ctx.Err() != nil:
			return bytes, damage, ctx.Err()
		case err != nil:
			damage = append(damage, Damage{Key: b.Digest, Stage: RemovedBlob, What: "it can't be read: " + err.Error()})
		case got != b.Digest:
			damage = append(damage, Damage{Key: b.Digest, Stage: RemovedBlob, What: "it does not have the content that its name says"})
			name := damagedBlob + strings.TrimPrefix(b.Digest, "sha256:")
			if err := os.Rename(b.Path, filepath.Join(s.blobDir(), name)); err != nil {
				return bytes, damage, fmt.Errorf("moving a damaged blob away: %w", err)
			}
		}
		if looked != nil {
			looked(b)
		}
	}
	return bytes, damage, nil
}

// BlobUse is a blob and when it was used last.
type BlobUse struct {
	Blob
	Used time.Time
}

// BlobUses lists all blobs with their last use.
func (s *Store) BlobUses() ([]BlobUse, error) {
	blobs, err := s.Blobs()
	if err != nil {
		return nil, err
	}
	var out []BlobUse
	for _, b := range blobs {
		if used, err := s.blobUsed(b); err == nil { // else removed meanwhile
			out = append(out, BlobUse{b, used})
		}
	}
	return out, nil
}

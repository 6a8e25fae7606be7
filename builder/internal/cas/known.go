package cas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
)

// Known is the remembered digest of a file outside the store. It holds as long
// as the file system says that nothing was written to the file.
type Known struct {
	Path   string    `json:"path"` // absolute
	Size   int64     `json:"size"` // bytes
	MTime  int64     `json:"mtimeNs"`
	CTime  int64     `json:"ctimeNs,omitempty"` // when anything about the file changed; 0 where there is no such time
	Device uint64    `json:"device,omitempty"`
	Inode  uint64    `json:"inode,omitempty"`
	Digest string    `json:"digest"` // "sha256:…"
	Hashed time.Time `json:"hashed"` // when hashing began
}

// rest is how much older than its hashing a file's last change must be: a write
// within the same tick of the file system's clock leaves no trace. Ticks are two
// seconds on FAT, one on some others; a time with a fraction comes from a clock
// that ticks every few milliseconds.
func rest(changed int64) time.Duration {
	if changed%int64(time.Second) == 0 {
		return 2 * time.Second
	}
	return 100 * time.Millisecond
}

// DigestKnown is DigestFile with a memory: a file that was hashed before and
// has the same path, size, times and inode is not read again.
func (s *Store) DigestKnown(ctx context.Context, path string) (string, int64, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", 0, err
	}
	now := time.Now()
	before, err := identify(abs)
	if err != nil {
		return "", 0, err
	}
	if k, ok := s.recall(before); ok {
		return k.Digest, k.Size, nil
	}
	digest, size, err := DigestFile(ctx, abs)
	if err != nil {
		return "", 0, err
	}
	after, err := identify(abs)
	if err != nil {
		return "", 0, err
	}
	if !before.same(after) || size != before.Size {
		return "", 0, fmt.Errorf("hashing %s: it was written to meanwhile", path)
	}
	after.Digest, after.Hashed = digest, now
	// What can't be remembered, on a full disk say, is hashed again next time.
	_ = s.remember(ctx, after)
	return digest, size, nil
}

// IsKnown says whether DigestKnown would answer from memory.
func (s *Store) IsKnown(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	now, err := identify(abs)
	if err != nil {
		return false
	}
	_, ok := s.recall(now)
	return ok
}

// recall returns what is remembered of a file, if it still holds.
func (s *Store) recall(now Known) (Known, bool) {
	k, err := readKnown(s.knownPath(now.Path))
	return k, err == nil && k.same(now) && k.trusted()
}

func (s *Store) remember(ctx context.Context, k Known) error {
	path := s.knownPath(k.Path)
	if !k.trusted() {
		return ignoreGone(os.Remove(path)) // it would not be used
	}
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(ctx, path, b, 0o644)
}

// VerifyKnown hashes every file again whose digest is remembered, and forgets
// those that are gone or were changed. It returns the files that have another
// content although nothing else about them has changed: what a build would
// have taken for the old content.
func (s *Store) VerifyKnown(ctx context.Context) (wrong []Known, err error) {
	entries, err := os.ReadDir(s.knownDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the remembered digests: %w", err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		entry := filepath.Join(s.knownDir(), e.Name())
		k, err := readKnown(entry)
		if err != nil {
			err = os.Remove(entry)
		} else if now, statErr := identify(k.Path); statErr != nil || !k.same(now) {
			err = os.Remove(entry)
		} else {
			var got string
			got, _, err = DigestFile(ctx, k.Path)
			if err == nil && got != k.Digest {
				wrong = append(wrong, k)
				err = os.Remove(entry)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrong, fmt.Errorf("verifying the remembered digests: %w", err)
		}
	}
	return wrong, nil
}

// same says whether nothing was written between two looks at a file.
func (k Known) same(other Known) bool {
	return k.Path == other.Path && k.Size == other.Size && k.MTime == other.MTime && k.CTime == other.CTime &&
		k.Device == other.Device && k.Inode == other.Inode
}

// trusted says whether the file had rested when it was hashed.
func (k Known) trusted() bool {
	changed := k.CTime // nobody can set it
	if changed == 0 {
		changed = k.MTime
	}
	return k.Hashed.Sub(time.Unix(0, changed)) >= rest(changed) && digestLike(k.Digest)
}

func digestLike(d string) bool {
	return len(d) == len("sha256:")+64 && blobName.MatchString(d[len("sha256:"):])
}

// identify says what the file system knows about a file.
func identify(abs string) (Known, error) {
	f, err := os.Open(abs)
	if err != nil {
		return Known{}, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return Known{}, err
	}
	if !fi.Mode().IsRegular() {
		return Known{}, fmt.Errorf("%s is no regular file", abs)
	}
	k := Known{Path: abs, Size: fi.Size(), MTime: fi.ModTime().UnixNano()}
	return k, identity(f, fi, &k)
}

func readKnown(path string) (Known, error) {
	var k Known
	b, err := os.ReadFile(path)
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(b, &k)
}

func (s *Store) knownDir() string { return filepath.Join(s.root, "known") }

func (s *Store) knownPath(abs string) string {
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(s.knownDir(), hex.EncodeToString(sum[:])+".json")
}

// Package cas is the store: results of stages, each under the key that decides
// it, in folders that appear by rename only. It is safe for concurrent
// processes, and a process that dies at any moment leaves nothing that could be
// taken for a result. It knows keys and files, not stages.
//
//	results/<key>/key.json     what was hashed into the key, readable
//	results/<key>/result.json  the Result
//	results/<key>/<output>…    the outputs; disks are sealed read-only
//	results/.tmp-<key>-*       being made, or left by a process that died
//	locks/<key>                held while a key's result is made
//	locks/<key>.use            held by whoever uses it; its time is that of the last use
//	blobs/sha256/<hex>         files known by their content
//	downloads/<name>*          what is being downloaded, or was cut
//	known/<hash>.json          remembered digests of users' files
//	runs/<id>/                 events, transcripts, serial logs, screenshots
//	blobs/sha256/<digest>      files known by their content, read-only
//	downloads/<name>…          downloads on their way to become blobs
//	known/<hash>.json          remembered digests of files outside the store
package cas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/capacity"
	"github.com/wbox-dev/wbox/builder/internal/ctxio"
)

// Store is a folder of results.
type Store struct {
	root string
	mu   sync.Mutex
	held map[string]*os.File // by key, see Hold
}

// Open opens the store at root, making it where it does not exist. A folder
// that can't be made or written is a *fault.Problem of class fault.Host.
func Open(root string) (*Store, error) {
	for _, d := range []string{"results", "locks", "runs"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return nil, unwritable(root, err)
		}
	}
	probe, err := os.CreateTemp(filepath.Join(root, "results"), ".tmp-probe-*")
	if err != nil {
		return nil, unwritable(root, err)
	}
	probe.Close()
	if err := os.Remove(probe.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) { // a sweep may be quicker
		return nil, unwritable(root, err)
	}
	return &Store{root: root, held: map[string]*os.File{}}, nil
}

func unwritable(root string, err error) error {
	if capacity.IsFull(err) {
		return full(root, err)
	}
	return &fault.Problem{Class: fault.Host, Field: "--store", Value: root, Why: "is not writable", Err: err,
		Fix: "name another folder with --store or WBOX_STORE"}
}

// Root returns the store's folder.
func (s *Store) Root() string { return s.root }

// OutputResult is one output of a Result.
type OutputResult struct {
	Kind   string `json:"kind"`
	Digest string `json:"digest,omitempty"` // "sha256:…", of all but secrets
	Size   int64  `json:"size"`             // bytes
}

// Result describes what lies under a key.
type Result struct {
	Key     string                     `json:"key"`
	Stage   string                     `json:"stage"`
	Outputs map[string]OutputResult    `json:"outputs"`
	Parents []string                   `json:"parents,omitempty"` // keys of the disks that this result's disk is an overlay of
	Started time.Time                  `json:"started"`
	Elapsed time.Duration              `json:"elapsed_ns"`
	Bases   map[string]string          `json:"bases,omitempty"` // parent -> which making of it, set by Commit
	Run     string                     `json:"run"`             // id of the run that made it
	Facts   map[string]json.RawMessage `json:"facts,omitempty"`
}

// Dir returns the folder of a key's result, whether it exists or not.
func (s *Store) Dir(key string) string { return filepath.Join(s.root, "results", key) }

// Lookup returns a key's result. A result whose parents are gone is no result.
// The error is for a store that can't be read, not for a miss.
func (s *Store) Lookup(key string) (*Result, bool, error) {
	b, err := os.ReadFile(filepath.Join(s.Dir(key), "result.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading a stored result: %w", err)
	}
	var r Result
	if err := json.Unmarshal(b, &r); err != nil || r.Key != key {
		return nil, false, nil // damaged: made again, and replaced by Commit
	}
	if s.marked(key) {
		return nil, false, nil
	}
	for name, o := range r.Outputs {
		if !s.intact(key, name, o) {
			return nil, false, nil
		}
	}
	for _, p := range r.Parents {
		parent, ok, err := s.Lookup(p)
		if err != nil || !ok || !r.liesOn(parent) {
			return nil, false, err
		}
	}
	return &r, true, nil
}

// making tells one making of a result from another under the same key: a disk
// that was made again has other bytes, and no overlay of the first fits it.
func (r *Result) making() string { return r.Run + " " + r.Started.UTC().Format(time.RFC3339Nano) }

// liesOn says whether r's disk was made on this making of its parent.
func (r *Result) liesOn(parent *Result) bool {
	m, ok := r.Bases[parent.Key]
	return !ok || m == parent.making()
}

// intact says whether an output is there with the size that was recorded;
// contents are rehashed by verification, not by every lookup.
func (s *Store) intact(key, name string, o OutputResult) bool {
	size, err := outputSize(filepath.Join(s.Dir(key), name))
	return err == nil && size == o.Size
}

// Draft is a result that is being made.
type Draft struct {
	Dir   string // outputs are made here; a sibling of the final folders, so relative paths between results hold
	store *Store
	key   string
}

// Begin makes a folder for a new result of key. The caller holds the key's lock.
func (s *Store) Begin(key string) (*Draft, error) {
	dir, err := os.MkdirTemp(filepath.Join(s.root, "results"), ".tmp-"+key+"-")
	if err != nil {
		return nil, fmt.Errorf("making room in the store: %w", err)
	}
	return &Draft{Dir: dir, store: s, key: key}, nil
}

// Discard removes the draft. It is safe after Commit.
func (d *Draft) Discard() error {
	return removeSealed(d.Dir)
}

// Commit writes key.json and result.json, makes everything durable and moves
// the draft to its final place, replacing a damaged result there.
func (d *Draft) Commit(keyJSON []byte, r Result) error {
	r.Key = d.key
	r.Bases = map[string]string{}
	for _, p := range r.Parents {
		parent, ok, err := d.store.Lookup(p)
		if err != nil {
			return err
		}
		if ok {
			r.Bases[p] = parent.making()
		}
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if err := os.WriteFile(filepath.Join(d.Dir, "key.json"), keyJSON, 0o644); err != nil {
		return fmt.Errorf("writing the key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(d.Dir, "result.json"), b, 0o644); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if err := syncTree(d.Dir); err != nil {
		return fmt.Errorf("flushing the result: %w", err)
	}
	final := d.store.Dir(d.key)
	if _, err := os.Lstat(final); err == nil {
		old, err := os.MkdirTemp(filepath.Dir(final), ".tmp-"+d.key+"-") // the key is held: nobody sweeps it
		if err != nil {
			return fmt.Errorf("moving a damaged result away: %w", err)
		}
		if err := os.Rename(final, filepath.Join(old, "result")); err != nil {
			return fmt.Errorf("moving a damaged result away: %w", err)
		}
		defer removeSealed(old) //nolint:errcheck // what is left is swept as a temporary folder
	}
	if err := os.Rename(d.Dir, final); err != nil {
		return fmt.Errorf("moving the result into the store: %w", err)
	}
	return atomicfile.SyncDir(filepath.Dir(final))
}

// NewRun makes a folder for one run and returns its id and path. It is held as
// results are, before anybody can see it.
func (s *Store) NewRun(now time.Time) (id, dir string, err error) {
	f, err := os.CreateTemp(filepath.Join(s.root, "locks"), now.UTC().Format("20060102T150405Z-")+"*"+useSuffix)
	if err != nil {
		return "", "", fmt.Errorf("making a run folder: %w", err)
	}
	if _, err := tryLockShared(f); err != nil {
		f.Close()
		return "", "", fmt.Errorf("locking a run folder: %w", err)
	}
	id = strings.TrimSuffix(filepath.Base(f.Name()), useSuffix)
	s.mu.Lock()
	s.held[id] = f
	s.mu.Unlock()
	dir = filepath.Join(s.root, "runs", id)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", "", fmt.Errorf("making a run folder: %w", err)
	}
	return id, dir, nil
}

// Sweep removes what processes that died have left: drafts whose key nobody
// holds. It removes no result.
func (s *Store) Sweep() error {
	_, err := s.leftovers(false)
	return errors.Join(err, s.SweepBlobs(), s.sweepUnfinished(time.Now()))
}

// sweepUnfinished removes small files that were cut while they were written,
// which takes a moment: those of the last hour may be at work.
func (s *Store) sweepUnfinished(now time.Time) error {
	paths, err := filepath.Glob(filepath.Join(s.root, "*", atomicfile.TempPrefix+"*"))
	if err != nil {
		return nil //nolint:nilerr // the store's own name is no pattern
	}
	for _, p := range paths {
		if fi, err := os.Lstat(p); err != nil || !fi.Mode().IsRegular() || now.Sub(fi.ModTime()) < time.Hour {
			continue
		}
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sweeping the store: %w", err)
		}
	}
	return nil
}

// DigestFile returns "sha256:…" and the size of a file's content.
func DigestFile(ctx context.Context, path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.CopyBuffer(h, ctxio.Reader(ctx, f), make([]byte, 1<<20)) // gigabytes: few calls into the system
	if err != nil {
		return "", 0, fmt.Errorf("hashing %s: %w", path, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), n, nil
}

// DigestTree returns a digest over the names and contents of all regular files
// below dir, and their total size. Modes and times don't count.
func DigestTree(ctx context.Context, dir string) (string, int64, error) {
	var names []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, p)
		}
		return err
	})
	if err != nil {
		return "", 0, fmt.Errorf("listing %s: %w", dir, err)
	}
	sort.Strings(names)
	h := sha256.New()
	var total int64
	for _, p := range names {
		d, n, err := DigestFile(ctx, p)
		if err != nil {
			return "", 0, err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return "", 0, err
		}
		fmt.Fprintf(h, "%s %s\n", d, filepath.ToSlash(rel))
		total += n
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), total, nil
}

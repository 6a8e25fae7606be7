package cas

import (
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

// Entry is one result as it lies in the store, a damaged one too.
type Entry struct {
	Result        // only Key, and Stage where key.json still says it, if Damage is set
	Doc    []byte // key.json; nil where it can't be read
	Size   int64  // bytes on the disk, those of result.json and key.json too
	Used   time.Time
	Damage string // why no build takes it, or ""
}

// Entries lists every result, newest first. A result that another process
// removes meanwhile is left out.
func (s *Store) Entries() ([]Entry, error) {
	names, err := os.ReadDir(filepath.Join(s.root, "results"))
	if err != nil {
		return nil, fmt.Errorf("listing the store: %w", err)
	}
	var out []Entry
	for _, n := range names {
		if strings.HasPrefix(n.Name(), ".") || !n.IsDir() {
			continue
		}
		e, err := s.entry(n.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool {
		if !out[i].Started.Equal(out[j].Started) {
			return out[i].Started.After(out[j].Started)
		}
		return out[i].Key < out[j].Key
	})
	return out, nil
}

// entry reads one result. Its folder gone is fs.ErrNotExist.
func (s *Store) entry(key string) (Entry, error) {
	dir := s.Dir(key)
	fi, err := os.Stat(dir)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Result: Result{Key: key, Started: fi.ModTime()}}
	if e.Doc, err = os.ReadFile(filepath.Join(dir, "key.json")); err != nil {
		e.Doc = nil
	}
	r, why := s.read(key)
	if why == "" {
		e.Result = *r
		why = s.broken(r)
	} else {
		e.Stage = stageOf(e.Doc)
	}
	e.Damage = why
	if e.Size, err = treeSize(dir); err != nil {
		return Entry{}, err
	}
	e.Used = s.used(key, e.Started.Add(e.Elapsed))
	return e, nil
}

// Docs returns the key.json of every result of a stage, by key. What can't be
// read is left out.
func (s *Store) Docs(stage string) (map[string][]byte, error) {
	names, err := os.ReadDir(filepath.Join(s.root, "results"))
	if err != nil {
		return nil, fmt.Errorf("listing the store: %w", err)
	}
	out := map[string][]byte{}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), ".") || !n.IsDir() {
			continue
		}
		doc, err := os.ReadFile(filepath.Join(s.Dir(n.Name()), "key.json"))
		if err == nil && stageOf(doc) == stage {
			out[n.Name()] = doc
		}
	}
	return out, nil
}

// stageOf reads the stage's name from a key.json.
func stageOf(doc []byte) string {
	var d struct {
		Stage string `json:"stage"`
	}
	if json.Unmarshal(doc, &d) != nil {
		return ""
	}
	return d.Stage
}

// read reads a key's result.json, or says why it can't be used.
func (s *Store) read(key string) (r *Result, why string) {
	b, err := os.ReadFile(filepath.Join(s.Dir(key), "result.json"))
	if err != nil {
		return nil, "result.json is gone"
	}
	r = &Result{}
	if err := json.Unmarshal(b, r); err != nil || r.Key != key {
		return nil, "result.json is garbled"
	}
	return r, ""
}

// broken says why a result whose result.json is good can't be used, or "".
func (s *Store) broken(r *Result) string {
	if b, err := os.ReadFile(s.markPath(r.Key)); err == nil {
		return strings.TrimSpace(string(b))
	}
	for _, name := range outputNames(r) {
		o := r.Outputs[name]
		size, err := outputSize(filepath.Join(s.Dir(r.Key), name))
		switch {
		case err != nil:
			return "its output " + name + " is gone"
		case size != o.Size:
			return fmt.Sprintf("its output %s has %d bytes instead of %d", name, size, o.Size)
		}
	}
	for _, p := range r.Parents {
		parent, ok, err := s.Lookup(p)
		switch {
		case err != nil || !ok:
			return "the result " + short(p) + ", on whose disk it is layered, is gone or damaged"
		case !r.liesOn(parent):
			return "the result " + short(p) + ", on whose disk it is layered, has been made again since"
		}
	}
	return ""
}

// Missing says why Lookup has no result for a key, or "" where it has one.
// found says whether anything lies under the key.
func (s *Store) Missing(key string) (why string, found bool) {
	if _, err := os.Stat(s.Dir(key)); err != nil {
		return "no result of this key is in the store", false
	}
	r, why := s.read(key)
	if why == "" {
		why = s.broken(r)
	}
	return why, true
}

func outputNames(r *Result) []string {
	var names []string
	for n := range r.Outputs {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func short(key string) string { return key[:min(12, len(key))] }

// outputSize is the size of an output as it is recorded: of a folder, that of
// all files in it.
func outputSize(path string) (int64, error) {
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return 0, err
	case fi.IsDir():
		return treeSize(path)
	}
	return fi.Size(), nil
}

// treeSize sums up the sizes of all regular files below dir. What vanishes
// meanwhile has no size.
func treeSize(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		fi, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		total += fi.Size()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measuring %s: %w", dir, err)
	}
	return total, nil
}

// Run is the folder of one run: its events, transcripts and logs.
type Run struct {
	ID   string
	Size int64 // bytes
	Used time.Time
	Live bool // it is still going on
}

// Runs lists the folders of runs, newest first.
func (s *Store) Runs() ([]Run, error) {
	names, err := os.ReadDir(filepath.Join(s.root, "runs"))
	if err != nil {
		return nil, fmt.Errorf("listing the runs: %w", err)
	}
	var out []Run
	for _, n := range names {
		fi, err := n.Info()
		if err != nil || !n.IsDir() {
			continue
		}
		size, err := treeSize(filepath.Join(s.root, "runs", n.Name()))
		if err != nil {
			return nil, err
		}
		r := Run{ID: n.Name(), Size: size, Used: fi.ModTime()}
		if _, err := os.Stat(s.usePath(r.ID)); err == nil {
			l, err := s.TryLock(r.ID + useSuffix)
			r.Live = err == nil && l == nil
			if l != nil {
				l.Unlock()
			}
		}
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID > out[j].ID })
	return out, nil
}

// Other is a folder of the store beside results, blobs and runs, such as a
// mirror of sources.
type Other struct {
	Name string
	Size int64 // bytes
}

// Others lists them, by name. Empty ones, such as that of the locks, are left out.
func (s *Store) Others() ([]Other, error) {
	names, err := os.ReadDir(s.root)
	if err != nil {
		return nil, fmt.Errorf("listing the store: %w", err)
	}
	var out []Other
	for _, n := range names {
		if !n.IsDir() || n.Name() == "results" || n.Name() == "blobs" || n.Name() == "runs" {
			continue
		}
		size, err := treeSize(filepath.Join(s.root, n.Name()))
		if err != nil {
			return nil, err
		}
		if size > 0 {
			out = append(out, Other{n.Name(), size})
		}
	}
	return out, nil
}

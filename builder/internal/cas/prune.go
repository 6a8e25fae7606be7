package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"
)

// Limits say what a pruning keeps. What is of no use to anybody (leftovers of
// dead processes, results that are damaged or have lost a parent) goes without
// any limit.
type Limits struct {
	OlderThan time.Duration // what was not used for so long goes; 0 = no limit
	MaxSize   int64         // bytes: what was not used for longest goes until no more are left; negative = no limit
	KeepLast  int           // the newest results of each stage, blobs, and runs, that stay whatever the other limits say
	DryRun    bool          // say what would go, remove nothing
}

// What a Removed is.
const (
	RemovedResult   = "result"
	RemovedRun      = "run"
	RemovedBlob     = "blob"
	RemovedDownload = "download" // cut, or refused
	RemovedLeftover = "leftover" // of a process that died
)

// Removed is something that a pruning took away.
type Removed struct {
	Kind  string
	Name  string // key, id of the run, digest of the blob, name of the file or folder
	Stage string // of a result
	Size  int64
	Used  time.Time
	Why   string
}

// Pruned is what a pruning did.
type Pruned struct {
	Removed []Removed // in this order
	Freed   int64     // bytes
	Left    int64     // bytes
}

// candidate is something that may go.
type candidate struct {
	Removed
	depth  int     // how many disks lie under a result's
	worth  float64 // seconds that it takes to have a byte of it again
	keep   bool
	gone   bool
	remove func(c *candidate, dry bool) (bool, error)
}

// pruning is the state of one Prune.
type pruning struct {
	*Store
	limits   Limits
	now      time.Time
	entries  map[string]*Entry
	children map[string][]string
	byKey    map[string]*candidate
	out      Pruned
}

// Prune removes what the limits don't keep, what was not used for longest
// first, and never a result that is being made or used, or one that another
// result's disk is layered on, unless that one goes too. It may run beside
// builds and other prunings.
func (s *Store) Prune(ctx context.Context, now time.Time, l Limits) (Pruned, error) {
	p := &pruning{Store: s, limits: l, now: now, entries: map[string]*Entry{}, children: map[string][]string{}, byKey: map[string]*candidate{}}
	left, err := s.leftovers(l.DryRun)
	if err != nil {
		return p.out, err
	}
	blobs, err := s.blobLeftovers(l.DryRun)
	if err != nil {
		return p.out, err
	}
	for _, r := range append(left, blobs...) {
		p.note(r)
	}
	list, err := p.candidates()
	if err != nil {
		return p.out, err
	}
	for _, c := range list {
		p.out.Left += c.Size
	}
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return p.out, err
		}
		c.Why = p.verdict(c)
		if c.Why == "" || c.keep || p.hasChild(c) {
			continue
		}
		ok, err := c.remove(c, l.DryRun)
		if err != nil {
			return p.out, err
		}
		if ok {
			c.gone = true
			p.out.Left -= c.Size
			p.note(c.Removed)
		}
	}
	return p.out, nil
}

func (p *pruning) note(r Removed) {
	p.out.Removed = append(p.out.Removed, r)
	p.out.Freed += r.Size
}

// verdict says why a candidate should go, or "". The candidates are asked in
// the order of their last use.
func (p *pruning) verdict(c *candidate) string {
	switch e := p.entries[c.Name]; {
	case c.Kind == RemovedResult && e.Damage != "":
		return e.Damage
	case p.limits.OlderThan > 0 && p.now.Sub(c.Used) > p.limits.OlderThan:
		return "not used since " + c.Used.UTC().Format("2006-01-02 15:04")
	case p.limits.MaxSize >= 0 && p.out.Left > p.limits.MaxSize:
		return "the store is larger than it may be"
	}
	return ""
}

func (p *pruning) hasChild(c *candidate) bool {
	return slices.ContainsFunc(p.children[c.Name], func(k string) bool { return !p.byKey[k].gone })
}

// candidates lists everything, in the order in which it goes: what was not
// used for longest first, and an overlay before what it is layered on.
func (p *pruning) candidates() ([]*candidate, error) {
	entries, err := p.Entries()
	if err != nil {
		return nil, err
	}
	perStage := map[string]int{}
	var list []*candidate
	for i := range entries {
		e := &entries[i]
		p.entries[e.Key] = e
		for _, parent := range e.Parents {
			p.children[parent] = append(p.children[parent], e.Key)
		}
		c := &candidate{Removed: Removed{Kind: RemovedResult, Name: e.Key, Stage: e.Stage, Size: e.Size, Used: e.Used}, remove: p.removeResult}
		if e.Damage == "" {
			perStage[e.Stage]++
			c.keep = perStage[e.Stage] <= p.limits.KeepLast // the entries are listed newest first
		}
		p.byKey[e.Key] = c
		list = append(list, c)
	}
	for _, c := range list {
		c.Used = p.lastUse(c.Name, map[string]bool{})
		c.depth = p.depth(c.Name, map[string]bool{})
		c.worth = p.worth(c.Name, map[string]bool{})
	}
	more, err := p.blobCandidates()
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	if more, err = p.downloadCandidates(); err != nil {
		return nil, err
	}
	list = append(list, more...)
	runs, err := p.Runs()
	if err != nil {
		return nil, err
	}
	for i, r := range runs {
		list = append(list, &candidate{Removed: Removed{Kind: RemovedRun, Name: r.ID, Size: r.Size, Used: r.Used},
			keep: r.Live || i < p.limits.KeepLast, remove: p.removeRun})
	}
	sort.SliceStable(list, func(i, j int) bool { return before(list[i], list[j]) })
	return list, nil
}

// before says whether a goes before b: what was not used for longest, and of
// what was used in the same hour, by the same build most likely, what is had
// again the quickest: a box before the installation that it was made of.
func before(a, b *candidate) bool {
	if ha, hb := a.Used.Truncate(time.Hour), b.Used.Truncate(time.Hour); !ha.Equal(hb) {
		return ha.Before(hb)
	}
	if a.worth != b.worth {
		return a.worth < b.worth
	}
	return a.depth > b.depth
}

// worth is what it costs to make a byte of a result again: never less than for
// what is layered on it, so that an overlay goes before what lies under it.
func (p *pruning) worth(key string, seen map[string]bool) float64 {
	e := p.entries[key]
	seen[key] = true
	w := e.Elapsed.Seconds() / float64(max(1, e.Size))
	for _, c := range p.children[key] {
		if !seen[c] {
			w = max(w, p.worth(c, seen))
		}
	}
	return w
}

// lastUse is when a result or one that is layered on it was used last.
func (p *pruning) lastUse(key string, seen map[string]bool) time.Time {
	last := p.entries[key].Used
	seen[key] = true // a ring can only come of damage, and must not hang us
	for _, c := range p.children[key] {
		if seen[c] {
			continue
		}
		if u := p.lastUse(c, seen); u.After(last) {
			last = u
		}
	}
	return last
}

func (p *pruning) depth(key string, seen map[string]bool) int {
	e := p.entries[key]
	if e == nil || seen[key] {
		return 0
	}
	seen[key] = true
	most := 0
	for _, parent := range e.Parents {
		most = max(most, 1+p.depth(parent, seen))
	}
	return most
}

// removeResult removes a result that nobody makes or uses, and that nobody
// has come to use since it was listed.
func (p *pruning) removeResult(c *candidate, dry bool) (bool, error) {
	e := p.entries[c.Name]
	_, err := os.Stat(p.usePath(c.Name))
	unused := errors.Is(err, fs.ErrNotExist)
	for _, name := range []string{c.Name, c.Name + useSuffix} {
		l, err := p.TryLock(name)
		if err != nil || l == nil {
			return false, err
		}
		defer l.Unlock()
	}
	if unused {
		p.touchAt(c.Name, e.Used) // making the lock's file was no use
	}
	if p.used(c.Name, e.Started.Add(e.Elapsed)).After(e.Used) {
		return false, nil
	}
	if now, err := p.entry(c.Name); err != nil || now.Damage != e.Damage {
		return false, ignoreGone(err) // removed, or mended, by another process
	}
	if newer, err := p.newChild(c.Name); err != nil || newer {
		return false, err
	}
	if dry {
		return true, nil
	}
	return true, p.discard(c.Name)
}

// newChild says whether a result that has come since the listing is layered on
// key's disk. None can come while we hold key: who makes one holds key too.
func (p *pruning) newChild(key string) (bool, error) {
	names, err := os.ReadDir(filepath.Join(p.root, "results"))
	if err != nil {
		return false, fmt.Errorf("listing the store: %w", err)
	}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), ".") || p.entries[n.Name()] != nil {
			continue
		}
		if r, why := p.read(n.Name()); why == "" && slices.Contains(r.Parents, key) {
			return true, nil
		}
	}
	return false, nil
}

// discard moves a result out of the way, at once and whole, and removes it.
// The caller holds the key, so that nobody sweeps the place it goes to.
func (s *Store) discard(key string) error {
	away, err := os.MkdirTemp(filepath.Join(s.root, "results"), ".tmp-"+key+"-")
	if err != nil {
		return fmt.Errorf("removing a result: %w", err)
	}
	if err := os.Rename(s.Dir(key), filepath.Join(away, "result")); err != nil {
		return fmt.Errorf("removing a result: %w", err)
	}
	if err := removeSealed(away); err != nil {
		return fmt.Errorf("removing a result: %w", err)
	}
	return nil
}

func (p *pruning) removeRun(c *candidate, dry bool) (bool, error) {
	var l *Lock
	if _, err := os.Stat(p.usePath(c.Name)); err == nil {
		if l, err = p.TryLock(c.Name + useSuffix); err != nil || l == nil {
			return false, err
		}
		defer l.Unlock()
	}
	if dry {
		return true, nil
	}
	if err := os.RemoveAll(filepath.Join(p.root, "runs", c.Name)); err != nil {
		return false, fmt.Errorf("removing a run's folder: %w", err)
	}
	if l != nil {
		l.Unlock() // Windows removes no file that is open; a run's name never comes again
	}
	os.Remove(p.usePath(c.Name)) //nolint:errcheck // an empty file
	return true, nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// leftovers removes the drafts whose key nobody holds: processes that died
// have left them. With dry set it only lists them.
func (s *Store) leftovers(dry bool) ([]Removed, error) {
	dir := filepath.Join(s.root, "results")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the store: %w", err)
	}
	var out []Removed
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), ".tmp-")
		if !ok {
			continue
		}
		key, _, _ := strings.Cut(rest, "-")
		l, err := s.TryLock(key)
		if err != nil || l == nil {
			continue
		}
		path := filepath.Join(dir, e.Name())
		r := Removed{Kind: RemovedLeftover, Name: e.Name(), Why: "left by a process that died"}
		r.Size, err = treeSize(path)
		if err == nil && !dry {
			err = removeSealed(path)
		}
		l.Unlock()
		if err != nil {
			return out, fmt.Errorf("sweeping the store: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}

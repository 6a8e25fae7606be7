package builder

import (
	"context"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/report"
)

// Cache is a store to look at and to tidy up.
type Cache struct {
	store *cas.Store
	sink  report.Sink
}

// OpenCache opens the store in a folder, which is made where it does not
// exist. sink, which may be nil, receives progress.
func OpenCache(dir string, sink report.Sink) (*Cache, error) {
	s, err := cas.Open(dir)
	if err != nil {
		return nil, err
	}
	if sink == nil {
		sink = report.Discard
	}
	return &Cache{s, sink}, nil
}

// CacheResult is one result of a stage.
type CacheResult struct {
	Stage  string    `json:"stage"` // empty where a damaged result doesn't say
	Key    string    `json:"key"`
	Size   int64     `json:"size"` // bytes
	Made   time.Time `json:"made"`
	Used   time.Time `json:"used"`             // last
	For    []string  `json:"for,omitempty"`    // the boxes in the store that were made of it
	Damage string    `json:"damage,omitempty"` // why no build takes it
}

// CacheFile is a blob, or the folder of a run.
type CacheFile struct {
	Name string    `json:"name"`          // digest or id
	Size int64     `json:"size"`          // bytes
	Used time.Time `json:"used,omitzero"` // last
	Live bool      `json:"live,omitempty"`
}

// CacheList is what is in a store.
type CacheList struct {
	Store   string        `json:"store"`
	Results []CacheResult `json:"results"` // in the order of the pipeline, the newest of a stage first
	Blobs   []CacheFile   `json:"blobs"`
	Runs    []CacheFile   `json:"runs"`  // newest first
	Other   []CacheFile   `json:"other"` // folders beside those, which pruning leaves alone but for cut downloads
	Size    int64         `json:"size"`  // bytes, all together
	Free    int64         `json:"free"`  // bytes free on its file system, 0 where unknown
}

// List lists what is in the store.
func (c *Cache) List() (*CacheList, error) {
	entries, err := c.store.Entries()
	if err != nil {
		return nil, err
	}
	blobs, err := c.store.BlobUses()
	if err != nil {
		return nil, err
	}
	runs, err := c.store.Runs()
	if err != nil {
		return nil, err
	}
	others, err := c.store.Others()
	if err != nil {
		return nil, err
	}
	out := &CacheList{Store: c.store.Root(), Results: []CacheResult{}, Blobs: []CacheFile{}, Runs: []CacheFile{}, Other: []CacheFile{}}
	uses := newLineage(entries).uses()
	byStage := map[string][]CacheResult{}
	for _, e := range entries {
		byStage[e.Stage] = append(byStage[e.Stage], CacheResult{Stage: e.Stage, Key: e.Key, Size: e.Size, Made: e.Started, Used: e.Used,
			For: uses[e.Key], Damage: e.Damage})
		out.Size += e.Size
	}
	for _, name := range stageOrder(byStage) {
		out.Results = append(out.Results, byStage[name]...)
	}
	for _, b := range blobs {
		out.Blobs = append(out.Blobs, CacheFile{Name: b.Digest, Size: b.Size, Used: b.Used})
		out.Size += b.Size
	}
	for _, r := range runs {
		out.Runs = append(out.Runs, CacheFile{Name: r.ID, Size: r.Size, Used: r.Used, Live: r.Live})
		out.Size += r.Size
	}
	for _, o := range others {
		out.Other = append(out.Other, CacheFile{Name: o.Name, Size: o.Size})
		out.Size += o.Size
	}
	if free, _, err := (Capacity{}).disk(out.Store); err == nil {
		out.Free = free
	}
	return out, nil
}

// PruneOptions say what a pruning keeps.
type PruneOptions struct {
	OlderThan time.Duration // what was not used for so long goes; 0 = no limit
	MaxSize   int64         // bytes that may be left; negative = no limit
	KeepLast  int           // results of each stage, blobs and runs that stay in any case
	DryRun    bool
}

// PrunedItem is something that a pruning took away.
type PrunedItem struct {
	Kind  string    `json:"kind"` // result, blob, download, run or leftover
	Name  string    `json:"name"` // key, digest, id or file
	Stage string    `json:"stage,omitempty"`
	Size  int64     `json:"size"` // bytes
	Used  time.Time `json:"used,omitzero"`
	Why   string    `json:"why"`
}

// PruneReport is what a pruning did, or would do.
type PruneReport struct {
	DryRun  bool         `json:"dryRun"`
	Removed []PrunedItem `json:"removed"`
	Freed   int64        `json:"freed"` // bytes
	Left    int64        `json:"left"`  // bytes
}

// Prune removes what the options don't keep, what was not used for longest
// first. What a build uses or makes right now stays, and so does what another
// result lies on that stays. It may run beside builds.
func (c *Cache) Prune(ctx context.Context, o PruneOptions) (*PruneReport, error) {
	p, err := c.store.Prune(ctx, time.Now(), cas.Limits{OlderThan: o.OlderThan, MaxSize: o.MaxSize, KeepLast: o.KeepLast, DryRun: o.DryRun})
	out := &PruneReport{DryRun: o.DryRun, Removed: []PrunedItem{}, Freed: p.Freed, Left: p.Left}
	for _, r := range p.Removed {
		out.Removed = append(out.Removed, PrunedItem{r.Kind, r.Name, r.Stage, r.Size, r.Used, r.Why})
	}
	return out, err
}

// CacheDamage is something wrong in a store.
type CacheDamage struct {
	What string `json:"what"` // stage, "blob" or "file"
	Name string `json:"name"` // key, digest or path
	Why  string `json:"why"`
}

// VerifyReport is what a verification found.
type VerifyReport struct {
	Results int           `json:"results"` // looked at
	Hashed  int64         `json:"hashed"`  // bytes
	Busy    []string      `json:"busy,omitempty"`
	Damage  []CacheDamage `json:"damage"`
}

// Verify rehashes what has a digest: deterministic outputs, blobs and files of
// users whose digest is remembered; of disks it checks the size and that the
// chain below them is there. What is damaged is not taken by a build any more.
func (c *Cache) Verify(ctx context.Context) (*VerifyReport, error) {
	entries, err := c.store.Entries()
	if err != nil {
		return nil, err
	}
	var done int64
	step := func(what string) {
		done++
		c.sink.Emit(report.Event{Kind: report.StageProgress, Stage: "verify", Message: what, Done: done, Total: int64(len(entries))})
	}
	v, err := c.store.Verify(ctx, engine.KeyOf, func(e cas.Entry) { step("rehashing " + e.Stage) })
	if err != nil {
		return nil, err
	}
	out := &VerifyReport{Results: v.Results, Hashed: v.Bytes, Busy: v.Busy, Damage: []CacheDamage{}}
	for _, d := range v.Damage {
		out.Damage = append(out.Damage, CacheDamage{d.Stage, d.Key, d.What})
	}
	n, damage, err := c.store.VerifyBlobs(ctx, nil)
	if err != nil {
		return nil, err
	}
	out.Hashed += n
	for _, d := range damage {
		out.Damage = append(out.Damage, CacheDamage{d.Stage, d.Key, d.What})
	}
	wrong, err := c.store.VerifyKnown(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range wrong {
		out.Damage = append(out.Damage, CacheDamage{"file", k.Path, "its content has changed, and its times have not"})
	}
	return out, nil
}

package cas

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// putAged puts a result of a stage that was made and used some days ago.
func putAged(t *testing.T, s *Store, key, stage string, days, size int, parents ...string) {
	t.Helper()
	d, err := s.Begin(key)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	if err := os.WriteFile(filepath.Join(d.Dir, "disk"), make([]byte, size), 0o444); err != nil {
		t.Fatal(err)
	}
	r := Result{Stage: stage, Parents: parents, Started: ago(days), Outputs: map[string]OutputResult{"disk": {Kind: "file", Size: int64(size)}}}
	if err := d.Commit([]byte(`{"stage":"`+stage+`"}`), r); err != nil {
		t.Fatal(err)
	}
}

func ago(days int) time.Time { return noon.AddDate(0, 0, -days) }

// chain3 is windows <- node <- payload, and a box without parents, beside an
// older node.
func chain3(t *testing.T, s *Store) {
	t.Helper()
	putAged(t, s, "windows", "windows", 40, 1000)
	putAged(t, s, "node1", "node", 35, 1000, "windows")
	putAged(t, s, "node2", "node", 10, 1000, "windows")
	putAged(t, s, "payload", "payload", 5, 1000, "node2")
	putAged(t, s, "box", "libvirt", 6, 1000)
}

func left(t *testing.T, s *Store) string {
	t.Helper()
	entries, err := s.Entries()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

func TestPruneKeeps(t *testing.T) {
	const all = "box node1 node2 payload windows"
	for _, c := range []struct {
		name   string
		limits Limits
		change func(t *testing.T, s *Store)
		want   string
	}{
		{"without limits", Limits{MaxSize: -1}, nil, all},
		{"by age; a parent stays with its child", Limits{OlderThan: 30 * 24 * time.Hour, MaxSize: -1}, nil, "box node2 payload windows"},
		{"all by age", Limits{OlderThan: time.Hour, MaxSize: -1}, nil, ""},
		{"all by age but the newest of each stage", Limits{OlderThan: time.Hour, MaxSize: -1, KeepLast: 1}, nil, "box node2 payload windows"},
		{"used today", Limits{OlderThan: 30 * 24 * time.Hour, MaxSize: -1}, func(_ *testing.T, s *Store) { s.touchAt("node1", noon) }, all},
		{"by size", Limits{MaxSize: 3 * 1600}, nil, "node2 payload windows"},
		{"by size, nothing", Limits{MaxSize: 0}, nil, ""},
		{"dry", Limits{MaxSize: 0, DryRun: true}, nil, all},
		{"held", Limits{MaxSize: 0}, func(t *testing.T, s *Store) { hold(t, s, "node1") }, "node1 windows"},
		{"being made again", Limits{MaxSize: 0}, func(t *testing.T, s *Store) {
			l, err := s.TryLock("payload")
			if err != nil || l == nil {
				t.Fatal(l, err)
			}
			t.Cleanup(l.Unlock)
		}, "node2 payload windows"},
		{"damaged ones go, and what lies on them", Limits{MaxSize: -1}, func(t *testing.T, s *Store) {
			if err := os.WriteFile(filepath.Join(s.Dir("node2"), "result.json"), []byte("{"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "box node1 windows"},
		{"parent gone", Limits{MaxSize: -1, KeepLast: 5}, func(t *testing.T, s *Store) {
			if err := os.RemoveAll(s.Dir("windows")); err != nil {
				t.Fatal(err)
			}
		}, "box"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			chain3(t, s)
			if c.change != nil {
				c.change(t, s)
			}
			p, err := s.Prune(t.Context(), noon, c.limits)
			if err != nil {
				t.Fatal(err)
			}
			if got := left(t, s); got != c.want {
				t.Errorf("left %q, want %q; removed %+v", got, c.want, p.Removed)
			}
			var freed int64
			for _, r := range p.Removed {
				freed += r.Size
				if r.Why == "" || r.Size < 1 {
					t.Errorf("no reason or size: %+v", r)
				}
			}
			if freed != p.Freed {
				t.Errorf("freed %d, sum %d", p.Freed, freed)
			}
		})
	}
}

// hold uses a result as another process would, without a trace in its age.
func hold(t *testing.T, s *Store, key string) {
	t.Helper()
	other, err := Open(s.Root())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Release)
	if err := other.Hold(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	other.touchAt(key, ago(100))
}

// TestPruneTakesWhatIsHadAgainTheQuickest has results of one build: a box, which
// is packed in a minute, goes before the installation, which takes half an hour.
func TestPruneTakesWhatIsHadAgainTheQuickest(t *testing.T) {
	s := open(t)
	chain3(t, s)
	for key, took := range map[string]time.Duration{"windows": 1500 * time.Second, "node1": 30 * time.Second, "node2": 30 * time.Second,
		"payload": time.Second, "box": 10 * time.Second} {
		b, err := os.ReadFile(filepath.Join(s.Dir(key), "result.json"))
		if err != nil {
			t.Fatal(err)
		}
		b = []byte(strings.Replace(string(b), `"elapsed_ns": 0`, fmt.Sprintf(`"elapsed_ns": %d`, took), 1))
		if err := os.WriteFile(filepath.Join(s.Dir(key), "result.json"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, key := range []string{"windows", "node1", "node2", "payload", "box"} { // as a build uses them
		s.touchAt(key, noon.Add(time.Duration(i)*time.Millisecond))
	}
	p, err := s.Prune(t.Context(), noon, Limits{MaxSize: 0})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range p.Removed {
		got = append(got, r.Name)
	}
	if o := strings.Join(got, " "); o != "payload box node1 node2 windows" && o != "payload box node2 node1 windows" {
		t.Errorf("went in the order %s", o)
	}
}

func TestDryRunSaysWhatARunWouldDo(t *testing.T) {
	s := open(t)
	chain3(t, s)
	l := Limits{OlderThan: 8 * 24 * time.Hour, MaxSize: 4000, DryRun: true}
	dry, err := s.Prune(t.Context(), noon, l)
	if err != nil {
		t.Fatal(err)
	}
	l.DryRun = false
	wet, err := s.Prune(t.Context(), noon, l)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(dry) != fmt.Sprint(wet) || len(wet.Removed) != 2 {
		t.Errorf("dry %+v\nwet %+v", dry, wet)
	}
}

func TestPruneRunsAndLeftovers(t *testing.T) {
	s := open(t)
	var ids []string
	for range 3 {
		other, err := Open(s.Root())
		if err != nil {
			t.Fatal(err)
		}
		id, dir, err := other.NewRun(noon)
		if err != nil {
			t.Fatal(err)
		}
		old := ago(50)
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		if len(ids) == 1 {
			t.Cleanup(other.Release) // still going on
		} else {
			other.Release()
		}
	}
	if _, err := s.Begin("dead"); err != nil {
		t.Fatal(err)
	}
	p, err := s.Prune(t.Context(), noon, Limits{OlderThan: 30 * 24 * time.Hour, MaxSize: -1})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := s.Runs()
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 || runs[0].ID != ids[0] || !runs[0].Live {
		t.Errorf("runs %+v, want the live one %s", runs, ids[0])
	}
	if p.Removed[0].Kind != RemovedLeftover || len(p.Removed) != 3 {
		t.Errorf("removed %+v", p.Removed)
	}
	drafts, _ := filepath.Glob(filepath.Join(s.Root(), "results", ".tmp-*"))
	uses, _ := filepath.Glob(filepath.Join(s.Root(), "locks", "2026*"))
	if len(drafts) != 0 || len(uses) != 1 {
		t.Errorf("left %v and %v", drafts, uses)
	}
}

// TestPruneBesideBuilds lets builders extend random chains while a pruning
// takes everything it may: a result that is held stays whole with its parents.
func TestPruneBesideBuilds(t *testing.T) {
	root := open(t).Root()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var builders, pruners sync.WaitGroup
	made := make([]int, 4)
	for i := range made {
		builders.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := buildChain(root, rand.IntN(3)); err != nil {
					t.Error(err)
					return
				}
				made[i]++
			}
		})
	}
	stop := make(chan struct{})
	removed := 0
	pruners.Go(func() { // as a build begins
		s, err := Open(root)
		if err != nil {
			t.Error(err)
			return
		}
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.Sweep(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	pruners.Go(func() {
		s, err := Open(root)
		if err != nil {
			t.Error(err)
			return
		}
		for {
			select {
			case <-stop:
				return
			default:
			}
			p, err := s.Prune(context.Background(), time.Now(), Limits{MaxSize: 0})
			if err := errors.Join(err, s.Sweep()); err != nil {
				t.Error(err)
				return
			}
			removed += len(p.Removed)
		}
	})
	builders.Wait()
	close(stop)
	pruners.Wait()
	t.Logf("builds %v, %d removed", made, removed)
	if removed == 0 || slices.Min(made) == 0 {
		t.Errorf("nothing was tested: builds %v, %d removed", made, removed)
	}
}

// buildChain finds or makes a chain of three results, holds each, and looks
// them up at the end, as a process of its own would.
func buildChain(root string, variant int) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	defer s.Release()
	keys := []string{"a", fmt.Sprintf("b%d", variant), fmt.Sprintf("c%d", variant)}
	for i, key := range keys {
		if err := findOrMake(s, key, keys[max(0, i-1):i]); err != nil {
			return err
		}
	}
	for _, key := range keys {
		if _, ok, err := s.Lookup(key); err != nil || !ok {
			why, _ := s.Missing(key)
			return fmt.Errorf("%s, which is held, is gone: %v %s", key, err, why)
		}
	}
	return nil
}

func findOrMake(s *Store, key string, parents []string) error {
	lock, err := s.Lock(context.Background(), key, nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := s.Hold(context.Background(), key); err != nil {
		return err
	}
	if _, ok, err := s.Lookup(key); ok || err != nil {
		return err
	}
	d, err := s.Begin(key)
	if err != nil {
		return err
	}
	defer d.Discard()
	if err := os.WriteFile(filepath.Join(d.Dir, "disk"), []byte(key), 0o444); err != nil {
		return err
	}
	return d.Commit([]byte("{}"), Result{Started: time.Now(), Parents: parents, Outputs: map[string]OutputResult{"disk": {Kind: "file", Size: int64(len(key))}}})
}

func TestAnOverlayOfAnEarlierMakingIsNoResult(t *testing.T) {
	s := open(t)
	putAged(t, s, "windows", "windows", 2, 10)
	putAged(t, s, "node", "node", 1, 10, "windows")
	if _, ok, _ := s.Lookup("node"); !ok {
		t.Fatal("node is not there")
	}
	putAged(t, s, "windows", "windows", 0, 10)
	if _, ok, err := s.Lookup("node"); ok || err != nil {
		t.Errorf("node is taken over another disk than it was made on: %v %v", ok, err)
	}
	if why, found := s.Missing("node"); !found || !strings.Contains(why, "made again") {
		t.Errorf("why %q", why)
	}
}

package cas

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "store with späce"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	return s
}

func put(t *testing.T, s *Store, key, content string, parents ...string) {
	t.Helper()
	d, err := s.Begin(key)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	if err := os.WriteFile(filepath.Join(d.Dir, "disk"), []byte(content), 0o444); err != nil {
		t.Fatal(err)
	}
	r := Result{Parents: parents, Outputs: map[string]OutputResult{"disk": {Kind: "disk", Size: int64(len(content))}}}
	if err := d.Commit([]byte("{}"), r); err != nil {
		t.Fatal(err)
	}
}

func TestCommitAppearsWhole(t *testing.T) {
	s := open(t)
	if _, ok, err := s.Lookup("k1"); ok || err != nil {
		t.Fatalf("empty store: %v %v", ok, err)
	}
	put(t, s, "k1", "one")
	r, ok, err := s.Lookup("k1")
	if err != nil || !ok || r.Key != "k1" {
		t.Fatalf("%+v %v %v", r, ok, err)
	}
	put(t, s, "k1", "other") // replaces
	if b, _ := os.ReadFile(filepath.Join(s.Dir("k1"), "disk")); string(b) != "other" {
		t.Errorf("content %q", b)
	}
	left, _ := filepath.Glob(filepath.Join(s.Root(), "results", ".tmp-*"))
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestResultWithoutParentIsNone(t *testing.T) {
	s := open(t)
	put(t, s, "parent", "p")
	put(t, s, "child", "c", "parent")
	if _, ok, _ := s.Lookup("child"); !ok {
		t.Fatal("child is not there")
	}
	if err := os.RemoveAll(s.Dir("parent")); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Lookup("child"); ok || err != nil {
		t.Errorf("child without parent: %v %v", ok, err)
	}
}

func TestSweepSparesWhatIsHeld(t *testing.T) {
	s := open(t)
	dead, err := s.Begin("dead")
	if err != nil {
		t.Fatal(err)
	}
	live, err := s.Begin("live")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := s.TryLock("live")
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	defer lock.Unlock()
	if err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.Dir); !os.IsNotExist(err) {
		t.Error("a dead draft is left")
	}
	if _, err := os.Stat(live.Dir); err != nil {
		t.Error("a draft that is being made was removed")
	}
}

func TestLocks(t *testing.T) {
	s := open(t)
	a, err := s.TryLock("x")
	if err != nil || a == nil {
		t.Fatal(a, err)
	}
	if b, err := s.TryLock("x"); b != nil || err != nil {
		t.Fatal("held twice", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	waited := 0
	if _, err := s.Lock(ctx, "x", func() { waited++ }); err == nil || waited != 1 {
		t.Errorf("err %v, told %d times", err, waited)
	}
	a.Unlock()
	b, err := s.Lock(t.Context(), "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Unlock()
}

func TestUnwritableStore(t *testing.T) {
	f := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(f, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(f)
	if fault.ClassOf(err) != fault.Host || !strings.Contains(err.Error(), f) || !strings.Contains(err.Error(), "--store") {
		t.Errorf("error %v", err)
	}
}

func TestDigestTreeSeesNamesAndContentsOnly(t *testing.T) {
	mk := func(files map[string]string) string {
		d := t.TempDir()
		for n, c := range files {
			p := filepath.Join(d, filepath.FromSlash(n))
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(c), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, _, err := DigestTree(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	a := mk(map[string]string{"x/a": "1", "b": "2"})
	if a != mk(map[string]string{"b": "2", "x/a": "1"}) {
		t.Error("the same tree has two digests")
	}
	for _, other := range []map[string]string{{"x/a": "1", "b": "3"}, {"x/c": "1", "b": "2"}, {"a": "1", "b": "2"}, {"x/a": "1"}} {
		if a == mk(other) {
			t.Errorf("%v has the same digest", other)
		}
	}
}

func TestDocsAreOfOneStage(t *testing.T) {
	s := open(t)
	for key, doc := range map[string]string{"a": `{"stage":"windows"}`, "b": `{"stage":"features"}`, "c": `{"stage":"windows","inputs":{}}`, "d": "garbled"} {
		put(t, s, key, "x")
		if err := os.WriteFile(filepath.Join(s.Dir(key), "key.json"), []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.Root(), "results", "without"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin("e"); err != nil { // a draft is no result
		t.Fatal(err)
	}
	docs, err := s.Docs("windows")
	if err != nil || len(docs) != 2 || string(docs["a"]) != `{"stage":"windows"}` || docs["c"] == nil {
		t.Errorf("%q, %v", docs, err)
	}
}

func TestSweepOfSmallFiles(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.knownDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for name, left := range map[string]bool{".wbox-tmp-old": false, ".wbox-tmp-new": true, "old.json": true} {
		p := filepath.Join(s.knownDir(), name)
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(name, "old") {
			if err := os.Chtimes(p, old, old); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Sweep(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(p); (err == nil) != left {
			t.Errorf("%s: %v", name, err)
		}
	}
}

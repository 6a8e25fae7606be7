package cas

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// addBlob adds a blob of some content that was used some days ago.
func addBlob(t *testing.T, s *Store, content string, days int) Blob {
	t.Helper()
	p := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := s.AddBlob(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	old := ago(days)
	if err := os.Chtimes(b.Path, old, old); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPruneBlobs(t *testing.T) {
	s := open(t)
	old, made, held := addBlob(t, s, "old", 50), addBlob(t, s, "iso of a result", 50), addBlob(t, s, "held", 50)
	// A result that was made of one of them, and is used today.
	d, err := s.Begin("windows")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	if err := d.Commit([]byte(`{"stage":"windows","inputs":{"iso":"`+made.Digest+`"}}`), Result{Stage: "windows", Started: ago(40)}); err != nil {
		t.Fatal(err)
	}
	s.touchAt("windows", noon)
	if err := s.HoldBlob(t.Context(), held.Digest); err != nil {
		t.Fatal(err)
	}
	s.touchAt(blobUse(held.Digest), ago(50))
	part, err := s.Download("abc")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{part + ".part", part + ".part.json", filepath.Join(filepath.Dir(part), "live.part")} {
		if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, ago(50), ago(50)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.TryLock("download-live")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	p, err := s.Prune(t.Context(), noon, Limits{OlderThan: 30 * 24 * time.Hour, MaxSize: -1})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range p.Removed {
		got = append(got, r.Kind+" "+r.Name)
	}
	want := []string{"blob " + old.Digest, "download abc.part", "download abc.part.json"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("removed %v, want %v", got, want)
	}
	for _, b := range []Blob{made, held} {
		if _, ok, err := s.Blob(b.Digest); !ok || err != nil {
			t.Errorf("%s is gone", b.Digest)
		}
	}
}

func TestVerifyBlobsMovesDamageAway(t *testing.T) {
	s := open(t)
	good, bad := addBlob(t, s, "good", 1), addBlob(t, s, "bad", 1)
	if err := os.Chmod(bad.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad.Path, []byte("bat"), 0o644); err != nil {
		t.Fatal(err)
	}
	n, damage, err := s.VerifyBlobs(t.Context(), nil)
	if err != nil || n != 7 || len(damage) != 1 || damage[0].Key != bad.Digest {
		t.Fatalf("%d %+v %v", n, damage, err)
	}
	if _, ok, _ := s.Blob(bad.Digest); ok {
		t.Error("a damaged blob is taken")
	}
	if _, ok, _ := s.Blob(good.Digest); !ok {
		t.Error("a good blob is gone")
	}
	for _, dry := range []bool{true, false} {
		p, err := s.Prune(t.Context(), noon, Limits{MaxSize: -1, DryRun: dry})
		if err != nil || len(p.Removed) != 1 || p.Removed[0].Size != 3 {
			t.Errorf("pruned %+v %v", p, err)
		}
	}
	if left, _ := os.ReadDir(s.blobDir()); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

package cas

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTimesAreMediansOfWholeResults(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if times, err := s.Times(); err != nil || len(times) != 0 {
		t.Fatalf("an empty store: %v, %v", times, err)
	}
	put := func(key, stage string, elapsed time.Duration) {
		t.Helper()
		d, err := s.Begin(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Commit([]byte("{}"), Result{Stage: stage, Elapsed: elapsed}); err != nil {
			t.Fatal(err)
		}
	}
	put("a1", "odd", 10*time.Second)
	put("a2", "odd", time.Hour) // an outlier
	put("a3", "odd", 12*time.Second)
	put("b1", "even", 10*time.Second)
	put("b2", "even", 20*time.Second)
	put("c1", "unmeasured", 0)
	put("d1", "damaged", time.Second)
	if err := os.WriteFile(filepath.Join(s.Dir("d1"), "result.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	draft, err := s.Begin("e1") // being made
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(draft.Dir, "result.json"), []byte(`{"stage":"draft","elapsed_ns":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := s.Times()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Duration{"odd": 12 * time.Second, "even": 15 * time.Second}
	if len(got) != len(want) || got["odd"] != want["odd"] || got["even"] != want["even"] {
		t.Errorf("times %v, want %v", got, want)
	}
}

package golden

import (
	"os"
	"testing"
)

// recorder is a testing.TB that remembers failing instead of failing.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true }
func (r *recorder) Helper()               {}

func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	Compare(t, true, "a/b.txt", []byte("one\ntwo\n"))
	if data, err := os.ReadFile("testdata/a/b.txt"); err != nil || string(data) != "one\ntwo\n" {
		t.Fatalf("update wrote %q, %v", data, err)
	}
	for got, fails := range map[string]bool{"one\ntwo\n": false, "one\n": true, "one\ntwo": true, "": true, "one\ntwo\nthree": true} {
		r := &recorder{TB: t}
		Compare(r, false, "a/b.txt", []byte(got))
		if r.failed != fails {
			t.Errorf("Compare with %q: failed = %v, want %v", got, r.failed, fails)
		}
	}
}

func TestFirstDifference(t *testing.T) {
	line, w, g, differ := firstDifference([]byte("a\nb\nc"), []byte("a\nx\nc"))
	if !differ || line != 2 || w != "b" || g != "x" {
		t.Errorf("got line %d %q %q %v", line, w, g, differ)
	}
}

// Package golden compares what a test made with a file under testdata. The
// test passes its own -update flag in, since a library that registers flags
// would show them in every program. It must not import anything of ours.
package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Compare fails the test unless got equals testdata/name. With update it
// writes the file instead, and says so in the test's log.
func Compare(t testing.TB, update bool, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("wrote %s", path)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if line, w, g, differ := firstDifference(want, got); differ {
		t.Errorf("%s differs in line %d; run the test with -update if that is meant\nwant: %s\n got: %s", path, line, w, g)
	}
}

// firstDifference returns the number and text of the first line that differs.
func firstDifference(want, got []byte) (line int, w, g string, differ bool) {
	if bytes.Equal(want, got) {
		return 0, "", "", false
	}
	ws, gs := bytes.SplitAfter(want, []byte("\n")), bytes.SplitAfter(got, []byte("\n"))
	at := func(lines [][]byte, i int) []byte {
		if i < len(lines) {
			return lines[i]
		}
		return nil
	}
	i := 0
	for i < len(ws) && i < len(gs) && bytes.Equal(ws[i], gs[i]) {
		i++
	}
	return i + 1, string(bytes.TrimSuffix(at(ws, i), []byte("\n"))), string(bytes.TrimSuffix(at(gs, i), []byte("\n"))), true
}

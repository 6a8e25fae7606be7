package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A line about a package or a test that is gone would leave nothing out and say
// that it does.
func TestTheListNamesWhatIsThere(t *testing.T) {
	list, err := exclusions(excluded)
	if err != nil || len(list) == 0 {
		t.Fatalf("%d lines, %v", len(list), err)
	}
	for _, e := range list {
		dir := filepath.Join("..", "..", "..", "..", filepath.FromSlash(strings.TrimSuffix(e.pkg, "/...")))
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no tests (%v)", e.pkg, err)
			continue
		}
		if e.test == "" {
			continue
		}
		name, _, _ := strings.Cut(e.test, "/")
		found := false
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "func "+name+"(")
		}
		if !found {
			t.Errorf("%s has no test %s", e.pkg, name)
		}
	}
}

func TestExclusions(t *testing.T) {
	list, err := exclusions("# comment\n\na/b/...: never\nc TestX: no: really\nc !TestY/with_sub: hangs\n")
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	for pkg, want := range map[string]bool{"a/b": true, "a/b/c": true, "a/bc": false, "c": false} {
		if got := list.whole(pkg); got != want {
			t.Errorf("%s is left out whole: %v", pkg, got)
		}
	}
	of := list.tests("c")
	if len(of) != 2 || of[0].skip || !of[1].skip || of[0].why != "no: really" {
		t.Errorf("got %+v", of)
	}
	if got := of.pattern(); got != "^TestX$|^TestY$/^with_sub$" {
		t.Errorf("pattern %s", got)
	}
	if got := list.tests("d").pattern(); got != "" {
		t.Errorf("pattern of nothing: %s", got)
	}
	for _, bad := range []string{"a", "a:", ": why", "a b c: why", "a b"} {
		if _, err := exclusions(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// A new Go may delete in another way: then the overlay says so.
func TestOverlayFits(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	file, err := writeOverlay(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !regexp.MustCompile(`"Replace".*at_windows\.go`).Match(text) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestFailures(t *testing.T) {
	out := "=== RUN   TestA\n    a_test.go:1: no\n--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/sub (0.1s)\n--- PASS: TestB (0s)\n--- FAIL: FuzzC (1s)\nFAIL\n"
	if got := failures(out); got != "^TestA$|^FuzzC$" {
		t.Errorf("got %s", got)
	}
	if got := failures("panic: no\n"); got != "" {
		t.Errorf("got %s", got)
	}
}

package kube

import (
	"os"
	"path/filepath"
	"testing"
)

func TestIsPath(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bin", "master", "v1.37.2"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]bool{
		"bin": true, "./bin": true, "../x": true, `..\x`: true, "/abs": true, ".": true, "..": true, " bin ": true, "./master": true,
		"": false, "none": false, "master": false, "v1.37.2": false, "1.37": false, "ci/latest": false, "git:x@y": false,
		"pull/12": false, "https://example.org/x": false, "stable-1.36": false,
	} {
		if got := IsPath(text, dir); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

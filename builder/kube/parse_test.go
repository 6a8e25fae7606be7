package kube

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func TestParse(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, d := range []string{"bin", "v1.30.0"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("kubelet.exe", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		text    string
		version string // of a module
		dir     string
		class   fault.Class
		says    string // part of the refusal
	}{
		{text: "v1.37.2", version: "v1.37.2"},
		{text: " 1.37.2\n", version: "v1.37.2"},
		{text: "v1.38.0-beta.0", version: "v1.38.0-beta.0"},
		{text: "v1.30.0", version: "v1.30.0"}, // though there is a folder of that name
		{text: "./v1.30.0", dir: "./v1.30.0"},
		{text: "bin", dir: "bin"},
		{text: ".", dir: "."},
		{text: dir, dir: dir},
		{text: "", class: fault.Usage, says: "empty"},
		{text: "v01.2.3", class: fault.Input, says: "leading zeros"},
		{text: "v1.37.02", class: fault.Input, says: "leading zeros"},
		{text: "1.37.2.1", class: fault.Input, says: "vX.Y.Z"},
		{text: "v1.37.2+k3s1", class: fault.Input, says: "metadata"},
		{text: "v2.0.0", class: fault.Input, says: "begin with v1"},
		{text: "v1.13.0", class: fault.Input, says: "older than v1.29.0"},
		{text: "1.37", class: fault.Input, says: "a minor version, which is not supported yet"},
		{text: "stable", class: fault.Input, says: "not supported yet"},
		{text: "stable-1.36", class: fault.Input, says: "not supported yet"},
		{text: "latest", class: fault.Input, says: "not supported yet"},
		{text: "ci/latest", class: fault.Input, says: "a CI build"},
		{text: "ci/v1.38.0-alpha.1.5+0123abcd", class: fault.Input, says: "a CI build"},
		{text: "git:https://example.com/k.git@main", class: fault.Input, says: "a git ref"},
		{text: "master", class: fault.Input, says: "a git ref"},
		{text: "0123abcd", class: fault.Input, says: "a git ref"},
		{text: "pull/12345", class: fault.Input, says: "a pull request"},
		{text: "https://example.com/kubelet.exe", class: fault.Input, says: "a URL"},
		{text: "./nowhere", class: fault.Input, says: "does not exist"},
		{text: `C:\nowhere`, class: fault.Input, says: "does not exist"},
		{text: "kubelet.exe", class: fault.Input, says: "is a file"},
		{text: "what is this", class: fault.Input, says: "neither a version nor a folder"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			src, err := Parse(tt.text, Options{})
			if fault.ClassOf(err) != tt.class {
				t.Fatalf("got %v, want class %d", err, tt.class)
			}
			if err != nil {
				p := fault.All(err)[0]
				if !strings.Contains(err.Error(), tt.says) || p.Field != "--k8s" || p.Fix == "" {
					t.Errorf("got %q (field %q, fix %q), want it to say %q", err, p.Field, p.Fix, tt.says)
				}
				return
			}
			switch s := src.(type) {
			case *moduleSource:
				if s.version != tt.version {
					t.Errorf("got the module %s, want %+v", s.version, tt)
				}
			case *dirSource:
				if s.path != tt.dir {
					t.Errorf("got the folder %s, want %+v", s.path, tt)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"v1.37.2", "1.37.2-rc.1", "v1.37.2+x", "ci/latest", "git:x@y", "pull/1", ".", "v01.2.3", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		src, err := Parse(text, Options{})
		if (src == nil) == (err == nil) {
			t.Fatalf("%q gives both or neither of source and error", text)
		}
		if m, ok := src.(*moduleSource); ok {
			if again, err := normalizeVersion(m.version, false); err != nil || again != m.version {
				t.Errorf("%q became %q, which is not normal", text, m.version)
			}
		}
	})
}

func TestNearest(t *testing.T) {
	have := []string{"v1.13.0", "v1.37.2", "v1.36.3", "v1.36.1", "v1.38.0-beta.0", "v1.35.4"}
	tests := map[string][]string{
		"v1.37.99": {"v1.36.1", "v1.36.3", "v1.37.2", "v1.38.0-beta.0"},
		"v1.36.2":  {"v1.35.4", "v1.36.1", "v1.36.3", "v1.37.2", "v1.38.0-beta.0"},
		"v1.99.0":  {"v1.36.3", "v1.37.2", "v1.38.0-beta.0"},
		"v1.29.0":  {"v1.35.4", "v1.36.1", "v1.36.3"},
	}
	for want, near := range tests {
		if got := nearest(have, want); !slices.Equal(got, near) {
			t.Errorf("nearest to %s: %v, want %v", want, got, near)
		}
	}
	if got := nearest(nil, "v1.37.0"); len(got) != 0 {
		t.Errorf("nearest of none: %v", got)
	}
}

func TestParseFolderKeepsPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with blank")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	src, err := Parse(dir, Options{Base: "v1.37.2"})
	if d, ok := src.(*dirSource); !ok || err != nil || d.path != dir || d.opts.Base != "v1.37.2" {
		t.Errorf("got %+v, %v", src, err)
	}
}

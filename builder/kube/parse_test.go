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
		git     string // repository and ref
		marker  string // kind and marker or version
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
		{text: "1.37", marker: "release/stable-1.37"},
		{text: "v1.36", marker: "release/stable-1.36"},
		{text: "stable", marker: "release/stable"},
		{text: "stable-1.36", marker: "release/stable-1.36"},
		{text: "latest", marker: "release/latest"},
		{text: "release/latest-1", marker: "release/latest-1"},
		{text: "release/v1.37.2", marker: "release/v1.37.2"},
		{text: "ci/latest", marker: "ci/latest"},
		{text: "ci/latest-1.37", marker: "ci/latest-1.37"},
		{text: "ci/v1.38.0-alpha.1.5+0123abcd", marker: "ci/v1.38.0-alpha.1.5+0123abcd"},
		{text: "ci/1.38.0-alpha.1.5+0123abcd", marker: "ci/v1.38.0-alpha.1.5+0123abcd"},
		{text: "ci/v1.38.0-alpha.1", class: fault.Input, says: "no commit"},
		{text: "ci/v1.13.0-alpha.1.5+0123abcd", class: fault.Input, says: "older than v1.29.0"},
		{text: "ci/banana", class: fault.Input, says: "is no CI build"},
		{text: "ci/stable", class: fault.Input, says: "only releases are stable"},
		{text: "ci/latest-fast", class: fault.Input, says: "linux/amd64 alone"},
		{text: "ci/fast/v1.38.0", class: fault.Input, says: "linux/amd64 alone"},
		{text: "ci/k8s-master", class: fault.Input, says: "no longer moved"},
		{text: "ci-cross/latest", class: fault.Input, says: "no longer published"},
		{text: "git:https://example.com/k.git@main", git: "https://example.com/k.git main"},
		{text: "git:git@example.com:you/k.git@fix/1", git: "git@example.com:you/k.git fix/1"},
		{text: "git:git@example.com:you/k.git", git: "git@example.com:you/k.git HEAD"},
		{text: "git:ssh://git@example.com/k", git: "ssh://git@example.com/k HEAD"},
		{text: "git:../kubernetes@v1.37.2", git: "../kubernetes v1.37.2"},
		{text: "master", git: DefaultGitURL + " master"},
		{text: "release-1.37", git: DefaultGitURL + " release-1.37"},
		{text: "0123abcd", git: DefaultGitURL + " 0123abcd"},
		{text: "pull/12345", git: DefaultGitURL + " pull/12345"},
		{text: "pull/12345/merge", git: DefaultGitURL + " pull/12345/merge"},
		{text: "pull/0", class: fault.Input, says: "names no pull request"},
		{text: "pull/1/2", class: fault.Input, says: "names no pull request"},
		{text: "git:", class: fault.Input, says: "names no git repository"},
		{text: "git:--upload-pack=x@main", class: fault.Input, says: "names no git repository"},
		{text: "git:ext::sh@main", class: fault.Input, says: "names no git repository"},
		{text: "git:k@a..b", class: fault.Input, says: "names no git ref"},
		{text: "git:k@-x", class: fault.Input, says: "names no git ref"},
		{text: "https://example.com/k.git", class: fault.Input, says: "write it as git:"},
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
			case *gitSource:
				if s.remote+" "+s.ref != tt.git {
					t.Errorf("got the ref %s of %s, want %+v", s.ref, s.remote, tt)
				}
			case *bucketSource:
				if s.kind+"/"+s.marker+s.version != tt.marker {
					t.Errorf("got the build %s/%s%s, want %+v", s.kind, s.marker, s.version, tt)
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
	for _, s := range []string{"v1.37.2", "1.37.2-rc.1", "v1.37.2+x", "ci/latest", "git:x@y", "pull/1", ".", "v01.2.3", "\x00",
		"git:git@h:p@r", "git:https://u@h/p", "pull/1/merge", "stable-1.37", "ci/1.38.0-alpha.1+0123abc", "release/1.37.2", "https://h/k.exe", "git:a@b\n--c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		src, err := Parse(text, Options{})
		if (src == nil) == (err == nil) {
			t.Fatalf("%q gives both or neither of source and error", text)
		}
		if g, ok := src.(*gitSource); ok && (strings.HasPrefix(g.ref, "-") || strings.HasPrefix(g.remote, "-") || strings.ContainsAny(g.ref, "\n:^~*? ") || g.ref == "" || g.remote == "") {
			t.Errorf("%q gives git the ref %q of %q", text, g.ref, g.remote)
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

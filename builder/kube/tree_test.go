package kube

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBuildTags(t *testing.T) {
	tests := map[string]struct {
		script string
		want   []string
	}{
		"plain": {"x=1\n    gotags=\"selinux,notest,$(sed tags)\"\n", []string{"selinux", "notest"}},
		"variable": {"extra=\"\"\nif x; then\n  extra=\",grpcnotrace\"\nfi\ngotags=\"selinux,notest${extra},$(sed)\"\n",
			[]string{"selinux", "notest", "grpcnotrace"}},
		"unset variable": {"gotags=\"selinux${nothing},$(x)\"\n", []string{"selinux"}},
		"no such line":   {"goflags=\"x\"\n", nil},
		"no tags":        {"gotags=\"\"\n", nil},
		"not tags":       {"gotags=\"a b,c\"\n", nil},
		"only used":      {"-tags=\"${gotags:-}\"\n", nil},
	}
	for name, tt := range tests {
		if got := buildTags(tt.script); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func FuzzBuildTags(f *testing.F) {
	f.Add("extra=\",b\"\ngotags=\"a${extra},$(x)\"\n")
	f.Add("gotags=\"")
	f.Fuzz(func(t *testing.T, script string) {
		for _, tag := range buildTags(script) {
			if strings.ContainsAny(tag, " ,\"'-") || tag == "" {
				t.Errorf("got the tag %q", tag)
			}
		}
	})
}

func TestKnownTags(t *testing.T) {
	for v, want := range map[string]string{
		"v1.29.6":        "selinux,notest",
		"v1.33.13":       "selinux,notest",
		"v1.34.0":        "selinux,notest,grpcnotrace",
		"v1.38.0-beta.0": "selinux,notest,grpcnotrace,kustomize_disable_go_plugin_support",
	} {
		if got := strings.Join(knownTags(v), ","); got != want {
			t.Errorf("%s: got %s, want %s", v, got, want)
		}
	}
}

const sampleMod = `module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
	example.com/lib v1.2.3
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.100.1
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/sample-cli-plugin => ./staging/src/k8s.io/sample-cli-plugin
)
`

// writeTree makes a folder with the files of a source tree.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadTree(t *testing.T) {
	dir := writeTree(t, map[string]string{"go.mod": sampleMod, ".go-version": "1.26.10\n", "hack/lib/golang.sh": "gotags=\"x,$(y)\"\n"})
	tr, err := readTree(dir, "v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tr.staging, []string{"k8s.io/api"}) || tr.golang != "go1.26.0" || tr.pinned != "go1.26.10" || tr.guessed || !slices.Equal(tr.tags, []string{"x"}) {
		t.Errorf("got %+v", tr)
	}
	mod, err := tr.outerMod("v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	const want = `module wbox.invalid/kubernetes

go 1.26.0

godebug default=go1.26

require (
	example.com/lib v1.2.3
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.100.1
	k8s.io/kubernetes v1.37.2
)

replace (
	k8s.io/api => k8s.io/api v0.37.2
	k8s.io/sample-cli-plugin => k8s.io/sample-cli-plugin v0.37.2
)
`
	if string(mod) != want {
		t.Errorf("got the module\n%s\nwant\n%s", mod, want)
	}
}

func TestReadTreeGuesses(t *testing.T) {
	dir := writeTree(t, map[string]string{"go.mod": sampleMod, ".go-version": "newest\n"})
	tr, err := readTree(dir, "v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	if tr.pinned != "" || !tr.guessed || !slices.Contains(tr.tags, "grpcnotrace") {
		t.Errorf("got %+v", tr)
	}
}

func TestReadTreeRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ mod, says string }{
		"other module": {"module example.com/x\n\ngo 1.26\n", "not that of k8s.io/kubernetes"},
		"no staging":   {"module k8s.io/kubernetes\n\ngo 1.26\n", "no staging"},
		"no module":    {"<html>", "reading go.mod"},
	} {
		_, err := readTree(writeTree(t, map[string]string{"go.mod": tt.mod}), "v1.37.2")
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", name, err, tt.says)
		}
	}
	tr, err := readTree(writeTree(t, map[string]string{"go.mod": sampleMod + "\nreplace example.com/lib => ./third_party/lib\n"}), "v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.outerMod("v1.37.2"); err == nil || !strings.Contains(err.Error(), "example.com/lib") {
		t.Errorf("a replacement outside of staging: got %v", err)
	}
}

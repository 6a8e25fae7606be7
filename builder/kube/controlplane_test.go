package kube

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

const controlPlaneFiles = "kube-apiserver kube-controller-manager kube-log-runner kube-proxy kube-scheduler"

// gotFiles gets what text asks for and returns the names, verified.
func gotFiles(t *testing.T, text string, opts Options) (Ref, string) {
	t.Helper()
	opts.CacheDir = t.TempDir()
	src, err := Parse(text, opts)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := src.Resolve(t.Context(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	bits, _, err := Get(t.Context(), src, ref, opts, filepath.Join(t.TempDir(), "bin"), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, b := range bits.Binaries {
		files = append(files, b.File)
	}
	return ref, strings.Join(files, " ")
}

// A control plane's programs are compiled instead of a box's, for the processor
// that was asked for; their flags are pinned apart.
func TestControlPlaneCompiled(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the standard library for two systems")
	}
	dir, _ := gitRepo(t)
	pins := map[string]bool{}
	for _, arch := range []string{"amd64", "arm64"} {
		ref, files := gotFiles(t, "git:"+dir+"@v1.37.2", Options{ControlPlane: arch})
		if files != controlPlaneFiles {
			t.Errorf("%s: got %s", arch, files)
		}
		if ref.Inputs["build-flags"] != "" {
			t.Errorf("%s: the flags of Windows programs are pinned: %v", arch, ref.Inputs)
		}
		pins[ref.Inputs["build-flags-linux"]] = true
	}
	if len(pins) != 2 {
		t.Errorf("pins of the flags: %v", pins)
	}
}

func TestControlPlanePublished(t *testing.T) {
	needTools(t, "go")
	b, err := kubetest.NewBucket(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b)
	defer server.Close()
	if err := b.PublishControlPlane(t.Context(), "ci", "v1.38.0-alpha.1.5+0123456789abcd", "amd64"); err != nil {
		t.Fatal(err)
	}
	opts := Options{ControlPlane: "amd64", BaseURL: server.URL}
	if _, files := gotFiles(t, "ci/v1.38.0-alpha.1.5+0123456789abcd", opts); files != controlPlaneFiles {
		t.Errorf("got %s", files)
	}
	opts.ControlPlane, opts.CacheDir = "arm64", t.TempDir() // was not published
	src, err := Parse("ci/v1.38.0-alpha.1.5+0123456789abcd", opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Resolve(t.Context(), report.Discard); fault.ClassOf(err) != fault.Input {
		t.Errorf("arm64: %v", err)
	}
}

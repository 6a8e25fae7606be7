package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/archive"
	"github.com/wbox-dev/wbox/images/imagestest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestImportWithoutUnpacking has the real programs keep a Windows image over two
// starts, as a box does over its boots.
func TestImportWithoutUnpacking(t *testing.T) {
	if testing.Short() {
		t.Skip("starts containerd")
	}
	if os.Geteuid() != 0 {
		t.Skip("containerd needs root")
	}
	dir := t.TempDir()
	for _, name := range []string{"containerd", "ctr"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("needs Debian's containerd: %v", err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	made, err := imagestest.Make(imagestest.Spec{Platforms: []v1.Platform{imagestest.Windows("10.0.20348.1")}, Layers: 2, Size: 5000})
	if err != nil {
		t.Fatal(err)
	}
	const name = "registry.k8s.io/pause:3.10.1"
	file := filepath.Join(dir, "pause.tar")
	if _, err := archive.Save(t.Context(), file, []archive.Entry{{Names: []string{name}, Source: images.Built(made.Image, "made")}}, archive.Options{}); err != nil {
		t.Fatal(err)
	}
	boot := func() *Runtime {
		r := &Runtime{Programs: dir, Root: filepath.Join(dir, "root"), State: filepath.Join(dir, "state"), Logf: t.Logf}
		t.Cleanup(r.Stop)
		return r
	}
	first := boot()
	if r := first.Ctr(t.Context(), []string{"--namespace", "k8s.io", "images", "import", "--no-unpack", file}); r.Exit != 0 {
		t.Fatalf("%+v", r)
	}
	if r := first.Ctr(t.Context(), []string{"images", "import", filepath.Join(dir, "none.tar")}); r.Exit == 0 || r.Stderr == "" {
		t.Errorf("a file that is not there: %+v", r)
	}
	first.Stop()
	r := boot().Ctr(t.Context(), []string{"--namespace", "k8s.io", "images", "list"})
	if r.Exit != 0 || !strings.Contains(r.Stdout, name+" ") || !strings.Contains(r.Stdout, made.Digest.String()) {
		t.Errorf("after another boot: %+v", r)
	}
}

func TestAProgramThatDiesIsTold(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"containerd": "#!/bin/sh\necho no room >&2\nexit 3\n", "ctr": "#!/bin/sh\nexit 1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := &Runtime{Programs: dir, Root: filepath.Join(dir, "root"), State: filepath.Join(dir, "state"), Logf: t.Logf}
	if got := r.Ctr(t.Context(), []string{"version"}); got.Exit != 1 || !strings.Contains(got.Stderr, "no room") {
		t.Errorf("got %+v", got)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/component/componenttest"
	"github.com/wbox-dev/wbox/images/imagestest"
)

// containerdFolder is where Debian's containerd is, "" and a word on it where
// there is none: then no image is preloaded.
func containerdFolder(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"containerd", "ctr"} {
		if path, err := exec.LookPath(name); err != nil || filepath.Dir(path) != "/usr/bin" {
			t.Log("without a preloaded image: Debian's containerd is not in /usr/bin")
			return ""
		}
	}
	return "/usr/bin"
}

// preloadsPause has the bake install containerd and import the sandbox image of
// Windows Server 2022 from a registry on loopback. It returns name and digest.
func (b *bake) preloadsPause() (name, digest string) {
	b.t.Helper()
	registry := imagestest.New()
	b.t.Cleanup(registry.Close)
	made, err := registry.Push(b.t.Context(), "pause:3.10.1", imagestest.Spec{Platforms: []v1.Platform{imagestest.Windows("10.0.20348.1")}, Layers: 2, Size: 5000})
	if err != nil {
		b.t.Fatal(err)
	}
	dir := filepath.Join(b.dir, "containerd")
	for project, packages := range map[string][]string{"containerd": {"./cmd/containerd", "./cmd/ctr"}, "hcsshim": {"./cmd/containerd-shim-runhcs-v1"}} {
		if err := componenttest.Compile(b.t.Context(), dir, project, "v2.3.4", packages...); err != nil {
			b.t.Fatal(err)
		}
	}
	b.selection = append(b.selection, "--containerd", dir, "--preload", "pause", "--registry", "registry.k8s.io=http://"+registry.Host)
	return "registry.k8s.io/pause:3.10.1", made.Digest.String()
}

// provesImage says whether the proof found an image in the box.
func (b *bake) provesImage(m builder.Manifest, image string) bool {
	b.t.Helper()
	for _, s := range m.Stages {
		if raw, ok := s.Facts["scripts"]; ok && s.Stage == "proof" {
			data, err := json.Marshal(raw)
			if err != nil {
				b.t.Fatal(err)
			}
			return bytes.Contains(data, []byte(image))
		}
	}
	return false
}

package archive

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/controlplane"
	"github.com/wbox-dev/wbox/images/hostprocess"
	"github.com/wbox-dev/wbox/images/layer"
)

func created() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// linuxImage makes an image with one file, whose text is the seed.
func linuxImage(t *testing.T, arch, seed string) v1.Image {
	t.Helper()
	l, err := layer.Linux(t.Context(), []layer.File{{Name: "etc/seed", Data: []byte(seed)}}, layer.Options{Created: created(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.ConfigFile(img, &v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers"}}); err == nil {
		img, err = mutate.AppendLayers(img, l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// windowsImage makes a HostProcess image of a program that is none.
func windowsImage(t *testing.T) (string, v1.Image) {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "kube-proxy.exe")
	if err := os.WriteFile(exe, []byte("MZ kube-proxy"), 0o600); err != nil {
		t.Fatal(err)
	}
	im, err := hostprocess.KubeProxy{Version: "v1.37.2", Program: exe}.Image()
	if err != nil {
		t.Fatal(err)
	}
	opts := layer.Options{Created: created(), Dir: t.TempDir()}
	base, err := hostprocess.Base(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	img, err := hostprocess.Build(t.Context(), base, im, opts)
	if err != nil {
		t.Fatal(err)
	}
	return im.Name, img
}

func indexOf(t *testing.T, all ...v1.Image) v1.ImageIndex {
	t.Helper()
	index, err := controlplane.Index(all...)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func digestOf(t *testing.T, img interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

const (
	schedulerName = "registry.k8s.io/kube-scheduler:v1.37.2"
	proxyName     = "registry.k8s.io/kube-proxy:v1.37.2"
)

// linuxEntries are two images that share nothing, one of them an index.
func linuxEntries(t *testing.T) (entries []Entry, scheduler v1.ImageIndex, proxy v1.Image) {
	scheduler = indexOf(t, linuxImage(t, "amd64", "s-amd64"), linuxImage(t, "arm64", "s-arm64"))
	proxy = linuxImage(t, "amd64", "p")
	return []Entry{{[]string{schedulerName}, images.BuiltIndex(scheduler, "the scheduler")}, {[]string{proxyName}, images.Built(proxy, "the proxy")}}, scheduler, proxy
}

func built(name string, img v1.Image) Entry { return Entry{[]string{name}, images.Built(img, name)} }

// tool skips the test where a program is missing.
func tool(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("needs %s (Debian: %s)", name, pkg)
	}
	return path
}

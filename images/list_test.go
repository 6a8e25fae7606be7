package images

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/imagestest"
)

// The names are those that kubeadm v1.36.3 and v1.37.2 print for the same flags.
func TestNamesOfKubeadm(t *testing.T) {
	const ci = "v1.38.0-alpha.1.5+0123456789abcd"
	for _, c := range []struct {
		version   string
		published Published
		repo      string
		want      string
	}{
		{"v1.37.2", Released, "", "registry.k8s.io/kube-apiserver:v1.37.2 registry.k8s.io/kube-controller-manager:v1.37.2 registry.k8s.io/kube-scheduler:v1.37.2 " +
			"registry.k8s.io/kube-proxy:v1.37.2 registry.k8s.io/coredns/coredns:v1.14.6 registry.k8s.io/pause:3.10.2 registry.k8s.io/etcd:3.7.0-0"},
		{"v1.37.2", Released, "r.example/k", "r.example/k/kube-apiserver:v1.37.2 r.example/k/kube-controller-manager:v1.37.2 r.example/k/kube-scheduler:v1.37.2 " +
			"r.example/k/kube-proxy:v1.37.2 r.example/k/coredns:v1.14.6 r.example/k/pause:3.10.2 r.example/k/etcd:3.7.0-0"},
		{ci, CIBuild, "", "gcr.io/k8s-staging-ci-images/kube-apiserver:v1.38.0-alpha.1.5_0123456789abcd gcr.io/k8s-staging-ci-images/kube-controller-manager:v1.38.0-alpha.1.5_0123456789abcd " +
			"gcr.io/k8s-staging-ci-images/kube-scheduler:v1.38.0-alpha.1.5_0123456789abcd gcr.io/k8s-staging-ci-images/kube-proxy:v1.38.0-alpha.1.5_0123456789abcd " +
			"registry.k8s.io/coredns/coredns:v1.14.6 registry.k8s.io/pause:3.10.2 registry.k8s.io/etcd:3.7.0-0"},
		{ci, CIBuild, "r.example", "r.example/kube-apiserver:v1.38.0-alpha.1.5_0123456789abcd r.example/kube-controller-manager:v1.38.0-alpha.1.5_0123456789abcd " +
			"r.example/kube-scheduler:v1.38.0-alpha.1.5_0123456789abcd r.example/kube-proxy:v1.38.0-alpha.1.5_0123456789abcd " +
			"r.example/coredns:v1.14.6 r.example/pause:3.10.2 r.example/etcd:3.7.0-0"},
	} {
		cl := release("")
		cl.Version, cl.Published, cl.Repository = c.version, c.published, c.repo
		list, err := List(cl)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range list {
			names = append(names, i.Asked)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s of %q:\n got %s\nwant %s", c.version, c.repo, got, c.want)
		}
	}
}

func TestSources(t *testing.T) {
	c := release("a.example/k8s")
	c.Windows, c.WindowsPause, c.Bases.Microsoft = "2022", "registry.k8s.io/pause:3.10.1", "m.example"
	c.CNI = []CNI{{Component: "node", Name: "quay.io/calico/node:v3.32.0"}}
	sources := func() (out []string) {
		list, err := List(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list[4:] {
			out = append(out, i.Source)
		}
		return out
	}
	want := []string{"a.example/k8s/coredns/coredns:v1.14.6", "a.example/k8s/pause:3.10.2", "a.example/k8s/etcd:3.7.0-0", "quay.io/calico/node:v3.32.0",
		"a.example/k8s/pause:3.10.1", "m.example/windows/nanoserver:ltsc2022", "m.example/windows/servercore:ltsc2022"}
	if got := sources(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	c.Bases.Mirror = "mirror.example/x"
	want = []string{"mirror.example/x/coredns:v1.14.6", "mirror.example/x/pause:3.10.2", "mirror.example/x/etcd:3.7.0-0", "mirror.example/x/calico/node:v3.32.0",
		"mirror.example/x/pause:3.10.1", "mirror.example/x/windows/nanoserver:ltsc2022", "mirror.example/x/windows/servercore:ltsc2022"}
	if got := sources(); !slices.Equal(got, want) {
		t.Errorf("from a mirror: %v", got)
	}
	c.WindowsPause = "registry.k8s.io/pause:3.10.2" // the same as kubeadm's: listed once
	if got := sources(); len(got) != 6 {
		t.Errorf("%v", got)
	}
	c.Pause = ""
	if _, err := List(c); fault.ClassOf(err) != fault.Input {
		t.Errorf("a tag that is missing: %v", err)
	}
}

func TestRunsOn(t *testing.T) {
	for _, c := range []struct {
		host, image int
		want        bool
	}{{17763, 17763, true}, {17763, 20348, false}, {20348, 17763, false}, {20348, 20348, true}, {20348, 26100, false}, {26100, 20348, true}, {26100, 26100, true}, {26100, 17763, false}} {
		if got := RunsOn(c.host, c.image); got != c.want {
			t.Errorf("host %d, image %d: %v", c.host, c.image, got)
		}
	}
	if hostsOf(20348) != "2022, 2025" || BuildOf("10.0.26100.1") != 26100 || BuildOf("") != 0 {
		t.Errorf("%q", hostsOf(20348))
	}
}

func TestParseCNI(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cni.yaml")
	if err := os.WriteFile(file, []byte("  image: a.example/x:1\n  - \"image\": 'b/c:2'\n  # image: d.example/e:3\n  image: a.example/x:1\n  imagePullPolicy: Always\n{\"image\": \"no\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"none": "", "": "",
		"calico@v3.30.7": "docker.io/calico/cni:v3.30.7 docker.io/calico/kube-controllers:v3.30.7 docker.io/calico/node:v3.30.7",
		"calico@v3.32.0": "quay.io/calico/cni:v3.32.0 quay.io/calico/kube-controllers:v3.32.0 quay.io/calico/node:v3.32.0",
		"antrea@v2.7.0":  "docker.io/antrea/antrea-agent-ubuntu:v2.7.0 docker.io/antrea/antrea-controller-ubuntu:v2.7.0",
		file:             "a.example/x:1 docker.io/b/c:2",
	} {
		got, err := ParseCNI(text, false)
		var names []string
		for _, c := range got {
			names = append(names, c.Name)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %v, %v", text, names, err)
		}
	}
	for _, text := range []string{"calico", "calico@latest", "calico@3.30", "flannel@v0.27.0", "weave", t.TempDir()} {
		if _, err := ParseCNI(text, true); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func FuzzManifestImages(f *testing.F) {
	f.Add([]byte("image: a.example/b:c"))
	f.Add([]byte("- image: x@sha256:0\n\"image\": 'y'"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := manifestImages("--cni", "file", data)
		if err == nil && len(got) == 0 {
			t.Error("neither an image nor an error")
		}
		for _, c := range got {
			if _, err := fullName(c.Name); err != nil {
				t.Errorf("%q can't be read again: %v", c.Name, err)
			}
		}
	})
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"digest":"sha256:00","size":1}]}`), "")
	f.Add([]byte(`{"schemaVersion":2,"config":{},"layers":[]}`), string(types.OCIManifestSchema1))
	f.Fuzz(func(t *testing.T, data []byte, mediaType string) {
		m, err := ParseManifest(data, types.MediaType(mediaType))
		if err != nil {
			return
		}
		if !bytes.Equal(m.Raw, data) || m.IsIndex() && m.Blobs != nil || !m.IsIndex() && m.Children != nil {
			t.Errorf("%+v", m)
		}
		for _, d := range append(m.Blobs, m.Children...) {
			if len(d.Digest.Hex) != 64 || d.Size < 0 {
				t.Errorf("%+v", d)
			}
		}
	})
}

func TestParsePlatform(t *testing.T) {
	for text, want := range map[string]string{"linux/amd64": "linux/amd64", "linux/arm/v7": "linux/arm/v7", "windows/amd64:20348": "windows/amd64:20348", "windows/amd64:10.0.20348.2700": "windows/amd64:20348"} {
		if p, err := ParsePlatform("--platform", text); err != nil || p.String() != want {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "linux", "linux/", "/amd64", "a/b/c/d", "linux/amd64:1", "windows/amd64:"} {
		if p, err := ParsePlatform("--platform", text); fault.ClassOf(err) != fault.Usage {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
}

func TestPlatformsOfACopy(t *testing.T) {
	a, b := newRegistry(t), newRegistry(t)
	whole := pushed(t, a, "app:v1", five(2))
	c := newTestClient()
	platform := func(text string) Platform {
		p, err := ParsePlatform("--platform", text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	index, err := whole.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	// one platform: its manifest takes the index's place
	got := copied(t, c, a.Host+"/app:v1", b.Host+"/app:one", CopyOptions{Platforms: []Platform{platform("windows/amd64:20348")}}, index.Manifests[3].Digest)
	if got.Source != whole.Digest || got.Blobs != 3 {
		t.Errorf("%+v", got)
	}
	// several: an index of these, each as it was listed
	res, err := c.Copy(t.Context(), c.Remote(parsed(t, c, a.Host+"/app:v1")), parsed(t, c, b.Host+"/app:two"), CopyOptions{Platforms: []Platform{platform("linux/arm64"), platform("windows/amd64")}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Manifest(t.Context(), parsed(t, c, b.Host+"/app:two"))
	if err != nil || m.Digest != res.Digest || len(m.Children) != 3 || m.Children[1].Platform.OSVersion != "10.0.20348.2700" {
		t.Errorf("%+v, %v", m.Children, err)
	}
	if p := failed(t, c, a.Host+"/app:v1", b.Host+"/app:none", CopyOptions{Platforms: []Platform{platform("linux/riscv64")}}); p.Class != fault.Input || !strings.Contains(p.Fix, "windows/amd64:26100") {
		t.Errorf("%v", p)
	}
	// of a system that it has nothing for, only if another platform is left
	pushed(t, a, "linux:v1", imagestest.Spec{Layers: 1, Size: 10, Platforms: []v1.Platform{imagestest.Linux("amd64"), imagestest.Linux("arm64")}})
	both := CopyOptions{Platforms: []Platform{platform("windows/amd64:20348"), platform("linux/arm64")}}
	if res, err := c.Copy(t.Context(), c.Remote(parsed(t, c, a.Host+"/linux:v1")), parsed(t, c, b.Host+"/linux:v1"), both); err != nil || res.Blobs != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	if p := failed(t, c, a.Host+"/linux:v1", b.Host+"/linux:none", CopyOptions{Platforms: both.Platforms[:1]}); !strings.Contains(p.Fix, "linux/amd64, linux/arm64") {
		t.Errorf("%v", p)
	}
	onePlatform(t, c, b.Host+"/app:one")
	// what is no index must be made for it
	copied(t, c, b.Host+"/app:one", b.Host+"/app:same", CopyOptions{Platforms: []Platform{platform("windows/amd64:20348")}}, index.Manifests[3].Digest)
	if p := failed(t, c, b.Host+"/app:one", b.Host+"/app:other", CopyOptions{Platforms: []Platform{platform("linux/amd64")}}); !strings.Contains(p.Fix, "windows/amd64:20348") {
		t.Errorf("%v", p)
	}
}

// onePlatform reads an image of one platform.
func onePlatform(t *testing.T, c *Client, name string) {
	t.Helper()
	m, err := c.Manifest(t.Context(), parsed(t, c, name))
	if err != nil || m.IsIndex() || len(m.Blobs) == 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestAbsentTags(t *testing.T) {
	r := newRegistry(t)
	for _, tag := range []string{"v1.36.1", "v1.37.1", "v1.37.3", "latest"} {
		pushed(t, r, "kube-proxy:"+tag, imagestest.Spec{Layers: 1, Size: 10})
	}
	c := newTestClient()
	_, err := c.Manifest(t.Context(), parsed(t, c, r.Host+"/kube-proxy:v1.37.2"))
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "the nearest tags: v1.37.3, v1.37.1, v1.36.1") {
		t.Errorf("%v", err)
	}
	_, err = c.Manifest(t.Context(), parsed(t, c, r.Host+"/kube-proksy:v1.37.2"))
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
}

func TestReferences(t *testing.T) {
	c := newTestClient()
	for _, text := range []string{"registry.k8s.io/pause", "registry.k8s.io/Pause:1", "registry.k8s.io/pause:", "registry.k8s.io/pause:1:2", "pause@sha256:12", "a b", ""} {
		if ref, err := c.Parse("image", text); fault.ClassOf(err) != fault.Usage {
			t.Errorf("%q is taken as %v, %v", text, ref, err)
		}
	}
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{"0": 0, "120": 2 * time.Minute, "Sat, 01 Aug 2026 12:00:30 GMT": 30 * time.Second, "Sat, 01 Aug 2026 11:00:00 GMT": 0} {
		if got, ok := retryAfter(text, now); !ok || got != want {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-1", "soon", "1.5"} {
		if got, ok := retryAfter(text, now); ok {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	write := func(name, tag string) string {
		data, err := imagestest.Archive(tag, imagestest.Spec{Layers: 2, Size: 5000})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("a.tar", "registry.k8s.io/kube-proxy-amd64:v1_2")
	src, err := Archive(good, "kube-proxy", "v1_2")
	if err != nil {
		t.Fatal(err)
	}
	r := newRegistry(t)
	c := newTestClient()
	var digests []string
	for _, tag := range []string{"a", "b"} {
		got, err := c.Copy(t.Context(), src, parsed(t, c, r.Host+"/kube-proxy:"+tag), CopyOptions{})
		if err != nil || got.Blobs != 3 {
			t.Fatalf("%+v, %v", got, err)
		}
		digests = append(digests, got.Digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("two imports have the digests %v", digests)
	}
	for _, bad := range [][2]string{{"kube-apiserver", "v1_2"}, {"kube-proxy", "v1_3"}, {"kube", "v1_2"}} {
		if _, err := Archive(good, bad[0], bad[1]); fault.ClassOf(err) != fault.Input {
			t.Errorf("%v is taken: %v", bad, err)
		}
	}
	if err := os.WriteFile(good, []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Archive(good, "kube-proxy", "v1_2"); fault.ClassOf(err) != fault.Input {
		t.Errorf("%v", err)
	}
}

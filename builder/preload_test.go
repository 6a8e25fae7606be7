package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/network"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stage"
	"github.com/wbox-dev/wbox/builder/stages/preload"
	"github.com/wbox-dev/wbox/images/archive"
	"github.com/wbox-dev/wbox/images/imagestest"
)

// mirrorOf is a registry that has what a box for Windows Server 2022 may hold,
// and the mirrors that lead there.
func mirrorOf(t *testing.T) (*imagestest.Registry, []network.Registry) {
	t.Helper()
	r := imagestest.New()
	t.Cleanup(r.Close)
	push := func(path string, platforms ...v1.Platform) {
		if _, err := r.Push(t.Context(), path, imagestest.Spec{Platforms: platforms, Layers: 2, Size: 100, Seed: uint64(len(path))}); err != nil {
			t.Fatal(err)
		}
	}
	push("k8s/pause:3.10.1", imagestest.Linux("amd64"), imagestest.Windows("10.0.17763.1"), imagestest.Windows("10.0.20348.1"))
	push("windows/nanoserver:ltsc2022", imagestest.Windows("10.0.20348.2700"))
	push("x/new:1", imagestest.Windows("10.0.26100.1"))
	push("x/linux:1", imagestest.Linux("amd64"))
	return r, []network.Registry{{Host: "registry.k8s.io", Mirrors: []string{"http://" + r.Host + "/k8s"}}, {Host: "_default", Mirrors: []string{"http://" + r.Host}}}
}

func resolvedFor(mirrors []network.Registry, words ...string) *Resolved {
	return &Resolved{Spec: &spec.Spec{Preload: words, Registries: mirrors}, Edition: iso.Edition{Build: 20348}}
}

func TestPreloadPinsWhatTheBoxRuns(t *testing.T) {
	reg, mirrors := mirrorOf(t)
	r := resolvedFor(mirrors, "pause", "nanoserver")
	if err := r.resolvePreload(t.Context(), ResolveOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	got := preload.Images(r.preload)
	if len(got) != 2 || got[0].Name != "registry.k8s.io/pause:3.10.1" || got[1].Name != "mcr.microsoft.com/windows/nanoserver:ltsc2022" || got[0].File == got[1].File {
		t.Fatalf("got %+v", got)
	}
	// The lock says the same later, whatever the tag means by then, and without the network.
	pinned := lock.New(nil, nil, map[string]lock.Input{imageInput(got[0].Name): {Digest: got[0].Digest}, imageInput(got[1].Name): {Digest: got[1].Digest}})
	reg.Reset()
	again := resolvedFor(mirrors, "pause", "nanoserver")
	if err := again.resolvePreload(t.Context(), ResolveOptions{Offline: true}, pinned); err != nil {
		t.Fatal(err)
	}
	if preload.Images(again.preload)[0] != got[0] || len(reg.Requests()) != 0 {
		t.Errorf("got %+v after %v", again.preload, reg.Requests())
	}
	// What the stage makes of it is the image of the box's own build.
	out := filepath.Join(t.TempDir(), "out")
	w := stage.NewWork(nil, map[string]string{preload.Output: out}, t.TempDir(), t.TempDir(), report.Discard)
	if err := preload.New(r.preload).Run(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	members, err := archive.Inspect(t.Context(), "", filepath.Join(out, got[0].File))
	if err != nil || len(members) != 1 || members[0].Name != got[0].Name || members[0].Platforms[0].OSVersion != "10.0.20348.1" {
		t.Errorf("got %+v, %v", members, err)
	}
}

func TestPreloadTakesAnArchive(t *testing.T) {
	_, mirrors := mirrorOf(t)
	r := resolvedFor(mirrors, "nanoserver")
	if err := r.resolvePreload(t.Context(), ResolveOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "my images.tar")
	if _, err := r.preload[0].Get(t.Context(), nil, file); err != nil {
		t.Fatal(err)
	}
	own := resolvedFor(nil, file)
	if err := own.resolvePreload(t.Context(), ResolveOptions{Offline: true}, nil); err != nil {
		t.Fatal(err)
	}
	got := preload.Images(own.preload)
	if len(got) != 1 || got[0].Digest != preload.Images(r.preload)[0].Digest || !strings.HasPrefix(got[0].File, "my-images-") {
		t.Fatalf("got %+v", got)
	}
	copied := filepath.Join(t.TempDir(), "copy.tar")
	if digests, err := own.preload[0].Get(t.Context(), nil, copied); err != nil || digests[got[0].Name] != got[0].Digest {
		t.Errorf("got %v, %v", digests, err)
	}
}

func TestPreloadRefuses(t *testing.T) {
	reg, mirrors := mirrorOf(t)
	text := filepath.Join(t.TempDir(), "text.tar")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"pause:latest":                     "is no name of an image",
		"example.org/x/new:1":              "made for Windows of build 26100",
		"example.org/x/linux:1":            "made for linux",
		"example.org/x/new:9":              "1", // the nearest tag
		"example.org/x/new@sha256:" + long: "asks for a tag|pods ask for a tag",
		text:                               "can't be read",
		"none.tar":                         "can't be read",
	} {
		err := resolvedFor(mirrors, word).resolvePreload(t.Context(), ResolveOptions{}, nil)
		found := false
		for _, w := range strings.Split(want, "|") {
			found = found || err != nil && strings.Contains(err.Error(), w)
		}
		if !found || fault.ClassOf(err) == fault.Failed || !strings.Contains(err.Error(), "--preload") {
			t.Errorf("%s: %v, want %s", word, err, want)
		}
	}
	if err := resolvedFor(mirrors, "pause", "registry.k8s.io/pause:3.10.1").resolvePreload(t.Context(), ResolveOptions{}, nil); err == nil || !strings.Contains(err.Error(), "a second time") {
		t.Errorf("twice: %v", err)
	}
	reg.Reset()
	err := resolvedFor(mirrors, "pause").resolvePreload(t.Context(), ResolveOptions{Offline: true}, nil)
	if fault.ClassOf(err) != fault.Network || len(reg.Requests()) != 0 {
		t.Errorf("offline: %v after %v", err, reg.Requests())
	}
}

var long = strings.Repeat("0", 64)

func TestAStandInWithoutContainerdIsRefused(t *testing.T) {
	_, mirrors := mirrorOf(t)
	for _, c := range []struct {
		medium iso.StandIn
		ok     bool
	}{{iso.StandIn{PowerShell: "7.6.9"}, false}, {iso.StandIn{PowerShell: "7.6.9", Containerd: "1.6.20"}, true}, {iso.StandIn{}, true}} {
		r := resolvedFor(mirrors, "pause")
		r.Media.StandIn = &c.medium
		if err := r.resolvePreload(t.Context(), ResolveOptions{}, nil); (err == nil) != c.ok || !c.ok && fault.ClassOf(err) != fault.Input {
			t.Errorf("%+v: %v", c.medium, err)
		}
	}
}

func TestTheImagesOfANetworkPlugin(t *testing.T) {
	for _, c := range []struct {
		words []string
		cni   string
		want  string // or of the error
	}{
		{[]string{"pause", "cni"}, "calico@v3.32.0", "pause quay.io/calico/cni-windows:v3.32.0 quay.io/calico/node-windows:v3.32.0"},
		{[]string{"antrea@v2.7.0", "a.b/c:d"}, "none", "docker.io/antrea/antrea-windows:v2.7.0 a.b/c:d"},
		{[]string{"cni"}, "none", ""},
		{[]string{"cni"}, "calico", "--preload cni: calico names no version"},
		{[]string{"calico@main"}, "none", "--preload calico@main: names no version"},
		{[]string{"flannel@v0.27.0"}, "none", "has images with versions of their own"},
	} {
		got, err := pluginImages(c.words, c.cni)
		if err != nil {
			if fault.ClassOf(err) != fault.Usage || c.want == "" || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--preload calico@v3.32.0") {
				t.Errorf("%v with --cni %s: %v, want %q", c.words, c.cni, err, c.want)
			}
			continue
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v with --cni %s: %v, want %q", c.words, c.cni, got, c.want)
		}
	}
}

func TestMirrored(t *testing.T) {
	for name, want := range map[string]string{
		"registry.k8s.io/pause:3":   "m.lan:5000/k8s/pause:3",
		"docker.io/calico/node:v3":  "d.lan/calico/node:v3",
		"quay.io/a/b:c":             "quay.io/a/b:c",
		"registry.lan:5000/own/x:1": "registry.lan:5000/own/x:1",
	} {
		got := mirrored(name, []network.Registry{{Host: "registry.lan:5000", PlainHTTP: true}, {Host: "registry.k8s.io", Mirrors: []string{"https://m.lan:5000/k8s/", "https://n"}},
			{Host: "docker.io", Mirrors: []string{"https://d.lan"}}})
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestArchiveNameIsFitForTheSeed(t *testing.T) {
	for _, name := range []string{"registry.k8s.io/pause:3.10.1", "ä ö.tar", "...", "x/" + strings.Repeat("y", 100) + ":z", "a/b:c@sha256:1"} {
		got := archiveName(name, "sha256:1")
		if strings.ContainsAny(got, ` :/\`) || len(got) > 60 || got[0] == '.' || got[0] == '-' || !strings.HasSuffix(got, ".tar") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if archiveName("a/b:c", "1") == archiveName("a/b:c", "2") || archiveName("a/b:c", "1") == archiveName("d/b:c", "1") {
		t.Error("two images have one name")
	}
}

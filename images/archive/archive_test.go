package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images"
)

func amd64() []images.Platform { return []images.Platform{{OS: "linux", Architecture: "amd64"}} }

// unpack writes an archive's members into a folder and returns it.
func unpack(t *testing.T, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(to, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An archive of one platform is read by go-containerregistry in both forms, and
// every digest is what it was.
func TestOnePlatformIsBothForms(t *testing.T) {
	entries, scheduler, proxy := linuxEntries(t)
	var buf bytes.Buffer
	saved, err := Write(t.Context(), &buf, entries, Options{Platforms: amd64(), Created: created()})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := scheduler.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{schedulerName: manifest.Manifests[0].Digest.String(), proxyName: digestOf(t, proxy)}
	for _, s := range saved {
		if s.Digest != want[s.Names[0]] {
			t.Errorf("%s is said to be %s, is %s", s.Names[0], s.Digest, want[s.Names[0]])
		}
	}
	index, err := layout.ImageIndexFromPath(unpack(t, buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	im, err := index.IndexManifest()
	if err != nil || len(im.Manifests) != 2 {
		t.Fatalf("%+v, %v", im, err)
	}
	for _, d := range im.Manifests {
		if n := d.Annotations["io.containerd.image.name"]; want[n] != d.Digest.String() {
			t.Errorf("%s is %s", n, d.Digest)
		}
	}
	for n := range want {
		tag, err := name.NewTag(n)
		if err != nil {
			t.Fatal(err)
		}
		img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil }, &tag)
		if err != nil {
			t.Fatal(err)
		}
		if config, err := img.ConfigFile(); err != nil || config.Architecture != "amd64" {
			t.Errorf("%s: %+v, %v", n, config, err)
		}
		if err := validate.Image(img); err != nil {
			t.Errorf("%s as a docker-archive: %v", n, err)
		}
	}
}

// An archive of all platforms has the index itself, and is not for docker load.
func TestAllPlatforms(t *testing.T) {
	entries, scheduler, _ := linuxEntries(t)
	var buf bytes.Buffer
	saved, err := Write(t.Context(), &buf, entries, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if saved[0].Digest != digestOf(t, scheduler) {
		t.Errorf("got %s", saved[0].Digest)
	}
	dir := unpack(t, buf.Bytes())
	index, err := layout.ImageIndexFromPath(dir)
	if err == nil {
		err = validate.Index(index)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err == nil {
		t.Error("docker load would take one platform of it")
	}
}

func TestTheSameBytes(t *testing.T) {
	entries, _, _ := linuxEntries(t)
	var a, b bytes.Buffer
	if _, err := Write(t.Context(), &a, entries, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), &b, entries, Options{}); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("%v, or the bytes differ", err)
	}
}

// broken is a source whose blobs are something else.
type broken struct {
	images.Source
	blob func() (io.ReadCloser, error)
}

func (b broken) Blob(context.Context, v1.Descriptor) (io.ReadCloser, error) { return b.blob() }

func TestSaveLeavesNothingHalf(t *testing.T) {
	good := images.Built(linuxImage(t, "amd64", "x"), "an image")
	other := func(text string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, c := range map[string]struct {
		ctx     context.Context
		entries []Entry
		class   fault.Class
	}{
		"cut":       {t.Context(), []Entry{{[]string{"a/b:c"}, broken{good, other("")}}}, fault.Failed},
		"longer":    {t.Context(), []Entry{{[]string{"a/b:c"}, broken{good, other(strings.Repeat("x", 1<<20))}}}, fault.Failed},
		"gone":      {t.Context(), []Entry{{[]string{"a/b:c"}, broken{good, func() (io.ReadCloser, error) { return nil, os.ErrNotExist }}}}, fault.Failed},
		"twice":     {t.Context(), []Entry{{[]string{"a/b:c"}, good}, {[]string{"a/b:c"}, good}}, fault.Usage},
		"none":      {t.Context(), nil, fault.Usage},
		"cancelled": {ctx, []Entry{{[]string{"a/b:c"}, good}}, fault.Interrupted},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "images.tar")
		if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Save(c.ctx, path, c.entries, Options{})
		if err == nil || fault.ClassOf(err) != c.class {
			t.Errorf("%s: %v", what, err)
		}
		text, _ := os.ReadFile(path)
		if left, _ := os.ReadDir(dir); len(left) != 1 || string(text) != "before" {
			t.Errorf("%s: left %v, %q", what, left, text)
		}
	}
	if _, err := Save(t.Context(), t.TempDir(), []Entry{{[]string{"a/b:c"}, good}}, Options{}); fault.ClassOf(err) != fault.Usage {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Save(t.Context(), filepath.Join(t.TempDir(), "none", "x.tar"), []Entry{{[]string{"a/b:c"}, good}}, Options{}); fault.ClassOf(err) != fault.Host {
		t.Errorf("no folder: %v", err)
	}
}

// Content of the right length and the wrong digest is refused.
func TestFlippedBit(t *testing.T) {
	good := images.Built(linuxImage(t, "amd64", "x"), "an image")
	root, err := good.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	flipped := broken{Source: good}
	n := 0
	flipped.blob = func() (io.ReadCloser, error) { // each blob in turn, in order of digests
		d := slices.SortedFunc(slices.Values(root.Blobs), func(a, b v1.Descriptor) int { return strings.Compare(a.Digest.String(), b.Digest.String()) })[n]
		n++
		rc, err := good.Blob(t.Context(), d)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(rc)
		data[len(data)/2] ^= 1
		return io.NopCloser(bytes.NewReader(data)), err
	}
	_, err = Write(t.Context(), io.Discard, []Entry{{[]string{"a/b:c"}, flipped}}, Options{})
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "was refused") {
		t.Error(err)
	}
}

func TestPlatformThatIsNotThere(t *testing.T) {
	entries, _, _ := linuxEntries(t)
	_, err := Write(t.Context(), io.Discard, entries, Options{Platforms: []images.Platform{{OS: "linux", Architecture: "s390x"}}})
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "linux/arm64") {
		t.Error(err)
	}
}

func TestSavedIsJSON(t *testing.T) {
	data, err := json.Marshal(Saved{Names: []string{"a"}, Digest: "sha256:x", Size: 3})
	if err != nil || string(data) != `{"names":["a"],"digest":"sha256:x","size":3}` {
		t.Errorf("%s, %v", data, err)
	}
}

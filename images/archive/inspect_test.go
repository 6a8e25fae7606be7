package archive

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images"
)

func TestInspectTellsWhatWriteWrote(t *testing.T) {
	entries, _, _ := linuxEntries(t)
	windowsName, windows := windowsImage(t)
	entries = append(entries, Entry{[]string{windowsName}, images.Built(windows, "built")})
	file := filepath.Join(t.TempDir(), "ä b.tar")
	saved, err := Save(t.Context(), file, entries, Options{})
	if err != nil {
		t.Fatal(err)
	}
	members, err := Inspect(t.Context(), "--preload", file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, s := range saved {
		for _, n := range s.Names {
			want[n] = s.Digest
		}
	}
	if len(members) != len(want) {
		t.Fatalf("got %d images, want %d", len(members), len(want))
	}
	for _, m := range members {
		if want[m.Name] != m.Digest || len(m.Platforms) == 0 {
			t.Errorf("%+v, want digest %s", m, want[m.Name])
		}
		if m.Name == windowsName && (m.Platforms[0].OS != "windows" || m.Platforms[0].OSVersion != "") {
			t.Errorf("a HostProcess image: %+v", m.Platforms)
		}
	}
}

// edited is an archive after f has had each of its members.
func edited(t *testing.T, f func(name string, data []byte) ([]byte, bool)) string {
	t.Helper()
	entries, _, _ := linuxEntries(t)
	var whole, out bytes.Buffer
	if _, err := Write(t.Context(), &whole, entries, Options{}); err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(&out)
	for r := tar.NewReader(&whole); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		var data bytes.Buffer
		if _, err := data.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		changed, keep := f(h.Name, data.Bytes())
		if !keep {
			continue
		}
		h.Size = int64(len(changed))
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(changed); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "edited.tar")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestInspectRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	docker := filepath.Join(t.TempDir(), "docker.tar")
	if err := tarball.WriteToFile(docker, name.MustParseReference("a.b/c:d"), linuxImage(t, "amd64", "x")); err != nil {
		t.Fatal(err)
	}
	index := func(change func(string) string) string {
		return edited(t, func(name string, data []byte) ([]byte, bool) {
			if name == indexFile {
				data = []byte(change(string(data)))
			}
			return data, true
		})
	}
	for what, c := range map[string]struct{ file, want string }{
		"nothing":          {filepath.Join(t.TempDir(), "none"), "can't be read"},
		"a folder":         {t.TempDir(), "can't be read"},
		"a text":           {text, "can't be read"},
		"a docker-archive": {docker, "no OCI image layout"},
		"a broken index":   {index(func(s string) string { return s[:len(s)/2] }), "index.json that can't be read"},
		"no images":        {index(func(string) string { return `{"schemaVersion":2,"manifests":[]}` }), "holds no image"},
		"a name that's not": {index(func(s string) string {
			return strings.NewReplacer("io.containerd.image.name", "x", "ref.name", "y").Replace(s)
		}), "without a full name"},
		"a huge index": {index(func(s string) string { return s + strings.Repeat(" ", largestDocument) }), "too large"},
		"a manifest that is not there": {edited(t, func(name string, data []byte) ([]byte, bool) {
			return data, !strings.HasPrefix(name, "blobs/") || !bytes.Contains(data, []byte(`"manifests"`)) && !bytes.Contains(data, []byte(`"layers"`))
		}), "not whole"},
		"a manifest that was changed": {edited(t, func(name string, data []byte) ([]byte, bool) {
			if strings.HasPrefix(name, "blobs/") && bytes.Contains(data, []byte(`"layers"`)) {
				data = append(data, ' ')
			}
			return data, true
		}), "not whole"},
	} {
		_, err := Inspect(t.Context(), "--preload", c.file)
		if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

func FuzzInspect(f *testing.F) {
	var tarred bytes.Buffer
	w := tar.NewWriter(&tarred)
	doc := `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2,"annotations":{"io.containerd.image.name":"a/b:c"}}]}`
	for n, d := range map[string]string{indexFile: doc, "blobs/sha256/44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a": "{}"} {
		_ = w.WriteHeader(&tar.Header{Name: n, Size: int64(len(d)), Mode: 0o644, Typeflag: tar.TypeReg})
		_, _ = w.Write([]byte(d))
	}
	_ = w.Close()
	f.Add(tarred.Bytes())
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "x.tar")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		members, err := Inspect(t.Context(), "--preload", file)
		if err == nil && len(members) == 0 {
			t.Error("no image and no error")
		}
		if err != nil && fault.ClassOf(err) != fault.Input {
			t.Error(err)
		}
	})
}

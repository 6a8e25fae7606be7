package component

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/wbox-dev/wbox/builder/component/componenttest"
	"github.com/wbox-dev/wbox/builder/fault"
)

// part is an entry of a tar file.
type part struct {
	name string
	data []byte
	kind byte // default: a regular file
	link string
}

func tarOf(parts ...part) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, p := range parts {
		if p.kind == 0 {
			p.kind = tar.TypeReg
		}
		h := &tar.Header{Name: p.name, Size: int64(len(p.data)), Typeflag: p.kind, Linkname: p.link, Mode: 0o644}
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if _, err := w.Write(p.data); err != nil {
			panic(err)
		}
	}
	w.Close() //nolint:errcheck // memory
	return b.Bytes()
}

func gz(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data) //nolint:errcheck // memory
	z.Close()     //nolint:errcheck // memory
	return b.Bytes()
}

func zst(data []byte) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return z.EncodeAll(data, nil)
}

// dockerTar is what docker save writes.
func dockerTar(os string, layers ...[]byte) []byte {
	parts := []part{{name: "config.json", data: fmt.Appendf(nil, `{"os":%q,"architecture":"amd64"}`, os)}}
	var names []string
	for i, l := range layers {
		names = append(names, fmt.Sprintf("l%d/layer.tar", i))
		parts = append(parts, part{name: names[i], data: l})
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "Layers": names}})
	if err != nil {
		panic(err)
	}
	return tarOf(append(parts, part{name: "manifest.json", data: manifest})...)
}

// ociTar is an OCI layout with an index of a Linux and a Windows image.
func ociTar(layers ...[]byte) []byte {
	var parts []part
	blob := func(data []byte) string {
		sum := sha256.Sum256(data)
		parts = append(parts, part{name: "blobs/sha256/" + hex.EncodeToString(sum[:]), data: data})
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	doc := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return data
	}
	var manifests []map[string]any
	for _, system := range []string{"linux", "windows"} {
		config := blob(fmt.Appendf(nil, `{"os":%q,"architecture":"amd64"}`, system))
		var list []map[string]any
		for _, l := range layers {
			list = append(list, map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": blob(l)})
		}
		manifests = append(manifests, map[string]any{"mediaType": "application/vnd.oci.image.manifest.v1+json",
			"digest": blob(doc(map[string]any{"config": map[string]any{"digest": config}, "layers": list}))})
	}
	index := blob(doc(map[string]any{"manifests": manifests}))
	parts = append(parts, part{name: "index.json", data: doc(map[string]any{"manifests": []map[string]any{{"mediaType": "application/vnd.oci.image.index.v1+json", "digest": index}}})})
	return tarOf(parts...)
}

// antreaLayers are the layers of an image of Antrea: an older agent below, what
// counts above.
func antreaLayers(t *testing.T) (lower, upper []byte) {
	t.Helper()
	dir := componenttest.Programs(t, "antrea", "v2.7.0", "./cmd/antrea-agent", "./cmd/antrea-cni", "./cmd/antctl")
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return tarOf(part{name: "Files/k/antrea/bin/antrea-agent.exe", data: []byte("old")}, part{name: "Files/old/antctl.exe", data: []byte("gone")}, part{name: "Files/Windows/notepad.exe", data: []byte("MZ")}),
		tarOf(part{name: "Files/k/antrea", kind: tar.TypeDir}, part{name: "Files/k/antrea/bin/antrea-agent.exe", data: read("antrea-agent.exe")}, part{name: "Files/.wh.old"},
			part{name: "Files/k/antrea/cni/antrea.exe", data: read("antrea-cni.exe")}, part{name: "Files/k/antrea/bin/antctl.exe", data: read("antctl.exe")})
}

func TestImage(t *testing.T) {
	lower, upper := antreaLayers(t)
	var want map[string]string
	for name, data := range map[string][]byte{
		"docker.tar":    dockerTar("windows", lower, upper),
		"oci.tar":       ociTar(gz(lower), zst(upper)),
		"docker.tar.gz": gz(dockerTar("windows", lower, upper)),
		"release.tgz":   gz(upper), // a release's archive
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		opts := Options{CacheDir: t.TempDir()}
		src, ref, err := resolve(t, request(t, Antrea, "antrea@"+path), opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want == nil {
			want = ref.Inputs
		}
		if ref.Source != "image" || len(ref.Inputs) != 3 || !reflect.DeepEqual(ref.Inputs, want) {
			t.Errorf("%s: got %+v, want %v", name, ref, want)
		}
		bits, _ := fetch(t, src, ref)
		if got := files(bits); !reflect.DeepEqual(got, []string{"antctl.exe", "antrea-agent.exe", "antrea-cni.exe"}) || bits.Binaries[0].From != path {
			t.Errorf("%s: got %+v", name, bits.Binaries)
		}
		if left, _ := os.ReadDir(opts.CacheDir); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// evil are archives that must be refused, each with what is said.
func evil() map[string]struct {
	data []byte
	says string
} {
	exe := bytes.Repeat([]byte("MZ"), 100)
	layer := func(parts ...part) []byte { return dockerTar("windows", tarOf(parts...)) }
	at := func(name string) part { return part{name: name, data: exe} }
	return map[string]struct {
		data []byte
		says string
	}{
		"no tar":               {[]byte("hello, this is no tar file at all"), "no tar file"},
		"empty":                {nil, "holds no image"},
		"cut off":              {layer(at("a/antctl.exe"))[:1024], "no image"},
		"a web page":           {[]byte("<html>" + strings.Repeat(" ", 2000)), "no tar file"},
		"no manifest":          {tarOf(at("readme.txt")), "it has no programs either"},
		"linux":                {dockerTar("linux", tarOf()), "for linux/amd64, none for windows/amd64"},
		"manifest no JSON":     {tarOf(part{name: "manifest.json", data: []byte("{")}), "reading its manifest.json"},
		"outer traversal":      {tarOf(at("../../etc/passwd")), "unsafe name"},
		"outer absolute":       {tarOf(at("/etc/passwd")), "unsafe name"},
		"outer link loop":      {tarOf(part{name: "manifest.json", kind: tar.TypeSymlink, link: "manifest.json"}), "has no"},
		"layer traversal":      {layer(at("../antctl.exe")), "unsafe name"},
		"layer deep traversal": {layer(at("Files/../../antctl.exe")), "unsafe name"},
		"layer absolute":       {layer(at("/antctl.exe")), "unsafe name"},
		"layer backslash":      {layer(at(`..\antctl.exe`)), "unsafe name"},
		"program a symlink":    {layer(part{name: "antctl.exe", kind: tar.TypeSymlink, link: "/etc/passwd"}), "no regular file"},
		"program a device":     {layer(part{name: "antctl.exe", kind: tar.TypeBlock}), "no regular file"},
		"program a pipe":       {layer(part{name: "antctl.exe", kind: tar.TypeFifo}), "no regular file"},
		"hardlink outside":     {layer(part{name: "antctl.exe", kind: tar.TypeLink, link: "../../etc/passwd"}), "none of the programs"},
		"hardlink elsewhere":   {layer(part{name: "antctl.exe", kind: tar.TypeLink, link: "Files/other.exe"}), "none of the programs"},
		"twice":                {layer(at("a/antctl.exe"), at("a/antctl.exe")), "twice"},
		"twice by case":        {layer(at("a/antctl.exe"), at("A/AntCtl.EXE")), "twice"},
		"two that differ":      {layer(at("a/antctl.exe"), part{name: "b/antctl.exe", data: []byte("MZ")}), "two different files"},
		"layer no tar":         {dockerTar("windows", []byte(strings.Repeat("x", 2000))), "reading the layer"},
		"layer broken gzip":    {dockerTar("windows", []byte{0x1f, 0x8b, 8, 0, 0, 0}), "reading the layer"},
		"layer broken zstd":    {dockerTar("windows", []byte{0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3}), "reading the layer"},
		"broken gzip":          {gz(layer(at("a/antctl.exe")))[:100], "unpacking it"},
		"digest with a path":   {tarOf(part{name: "index.json", data: []byte(`{"manifests":[{"digest":"sha256:../../../../etc/passwd"}]}`)}), "malformed digest"},
		"config missing":       {tarOf(part{name: "manifest.json", data: []byte(`[{"Config":"../x","Layers":[]}]`)}), "has no ../x"},
		"no images":            {tarOf(part{name: "manifest.json", data: []byte(`[]`)}), "holds no image"},
		"too many layers":      {tarOf(part{name: "c", data: []byte(`{"os":"windows","architecture":"amd64"}`)}, part{name: "manifest.json", data: []byte(`[{"Config":"c","Layers":["` + strings.Repeat(`c","`, 300) + `c"]}]`)}), "layers"},
		"index in itself":      {indexInItself(), "nested too deeply"},
		"bomb":                 {bomb(), "unpacks to more than"},
	}
}

// indexInItself is a layout whose index refers to an index that refers to
// itself: possible since nobody checks digests before reading.
func indexInItself() []byte {
	digest := "sha256:" + strings.Repeat("0", 64)
	index := fmt.Appendf(nil, `{"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","digest":%q}]}`, digest)
	return tarOf(part{name: "index.json", data: index}, part{name: "blobs/sha256/" + strings.Repeat("0", 64), data: index})
}

// bomb is an image of 1 MB whose layer says that it unpacks to 1.5 GB of zeros.
func bomb() []byte {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	w := tar.NewWriter(z)
	w.WriteHeader(&tar.Header{Name: "Files/big.bin", Size: 3 << 29, Typeflag: tar.TypeReg, Mode: 0o644}) //nolint:errcheck // memory
	io.CopyN(w, zeros{}, 3<<29)                                                                          //nolint:errcheck // memory
	w.Close()                                                                                            //nolint:errcheck // memory
	z.Close()                                                                                            //nolint:errcheck // memory
	return dockerTar("windows", b.Bytes())
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestEvilImages(t *testing.T) {
	for name, c := range evil() {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			path := filepath.Join(base, "image.tar")
			if err := os.WriteFile(path, c.data, 0o644); err != nil {
				t.Fatal(err)
			}
			cache := filepath.Join(base, "cache")
			_, _, err := resolve(t, request(t, Antrea, "antrea@"+path), Options{CacheDir: cache})
			if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want a refusal that says %q", err, c.says)
			}
			if left, _ := os.ReadDir(cache); len(left) != 0 {
				t.Errorf("left %v", left)
			}
			if left, _ := os.ReadDir(base); len(left) != 2 {
				t.Errorf("wrote outside: %v", left)
			}
		})
	}
}

// A hard link to a program of the same layer is that program.
func TestImageWithAHardLink(t *testing.T) {
	dir := componenttest.Programs(t, "calico", "v3.32.1", "./cni-plugin/cmd/calico")
	exe, err := os.ReadFile(filepath.Join(dir, "calico.exe"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	layer := tarOf(part{name: "Files/opt/calico.exe", data: exe}, part{name: "Files/opt/calico-ipam.exe", kind: tar.TypeLink, link: "Files/opt/calico.exe"})
	if err := os.WriteFile(path, dockerTar("windows", layer), 0o644); err != nil {
		t.Fatal(err)
	}
	src, ref, err := resolve(t, request(t, Calico, "calico@"+path), Options{CacheDir: t.TempDir()})
	if err != nil || len(ref.Inputs) != 2 || ref.Inputs["calico.exe"] != ref.Inputs["calico-ipam.exe"] {
		t.Fatalf("got %+v, %v", ref, err)
	}
	if bits, _ := fetch(t, src, ref); len(bits.Binaries) != 2 {
		t.Errorf("got %+v", bits.Binaries)
	}
}

// flannel comes from its release, which is an archive.
func TestReleaseOfFlannel(t *testing.T) {
	dir := componenttest.Programs(t, "flannel", "v0.28.0", ".")
	exe, err := os.ReadFile(filepath.Join(dir, "flannel.exe")) // called so after its module
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "flannel-v0.28.0-windows-amd64.tar.gz")
	if err := os.WriteFile(path, gz(tarOf(part{name: "flanneld.exe", data: exe}, part{name: "README.md", data: []byte("x")})), 0o644); err != nil {
		t.Fatal(err)
	}
	src, ref, err := resolve(t, request(t, Flannel, "flannel@"+path), Options{CacheDir: t.TempDir()})
	if err != nil || len(ref.Inputs) != 1 {
		t.Fatalf("got %+v, %v", ref, err)
	}
	if bits, _ := fetch(t, src, ref); !reflect.DeepEqual(files(bits), []string{"flanneld.exe"}) {
		t.Errorf("got %+v", bits.Binaries)
	}
}

func FuzzImage(f *testing.F) {
	for name, c := range evil() {
		if name != "bomb" {
			f.Add(c.data)
		}
	}
	f.Add(dockerTar("windows", gz(tarOf(part{name: "antctl.exe", data: []byte("MZ")}))))
	f.Fuzz(func(t *testing.T, data []byte) {
		base := t.TempDir()
		path, dir := filepath.Join(base, "image.tar"), filepath.Join(base, "out")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		scratch := t.TempDir()
		err := unpackImage(t.Context(), path, dir, scratch, func(base string) string {
			if base == "antctl.exe" {
				return base
			}
			return ""
		})
		left, _ := os.ReadDir(dir)
		if err == nil && (len(left) > 1 || len(left) == 1 && left[0].Name() != "antctl.exe") {
			t.Errorf("left %v", left)
		}
		if around, _ := os.ReadDir(base); len(around) != 2 {
			t.Errorf("wrote outside: %v", around)
		}
	})
}

package spec

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/network"
)

const head = "apiVersion: wbox.dev/v1alpha1\nkind: Box\n"

// texts returns what a document's problems say.
func texts(problems []error) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Error())
	}
	return out
}

func TestReadEveryField(t *testing.T) {
	d := read("f.yaml", []byte(head+`
k8s: 1.30
k8sBase: v1.37.2
k8sVersion: "v1.37.2"
cni: calico
containerd: ./c
windows: 2022
edition: core
iso: w.iso
providers: [libvirt, "qemu"]
preload: [pause, images.tar]
name: me/node
revision: 3
diskGiB: 100
output: boxes
cpus: 4
memory: 8GiB
activate: never
licenceDays: 60
allowEmulation: true
proxy: http://me:sesame@proxy.lan:3128
noProxy: [.lan]
clusterNetworks: [10.244.0.0/16, 10.96.0.0/12]
extraCAs: [ca.pem]
registries:
- host: docker.io
  mirrors: [https://mirror.lan, "https://second.lan"]
  ca: mirror.pem
- {host: "registry.lan:5000", plainHTTP: true, skipVerify: false}
`))
	if len(d.problems) != 0 {
		t.Fatal(texts(d.problems))
	}
	want := Spec{K8s: "1.30", K8sBase: "v1.37.2", K8sVersion: "v1.37.2", CNI: "calico", Containerd: "./c", Windows: "2022", Edition: "core",
		ISO: "w.iso", Providers: []string{"libvirt", "qemu"}, Preload: []string{"pause", "images.tar"}, Name: "me/node", Revision: 3, DiskGiB: 100, Output: "boxes", CPUs: 4, Memory: "8GiB", Activate: "never", LicenceDays: 60, AllowEmulation: true,
		Proxy: "http://me:sesame@proxy.lan:3128", NoProxy: []string{".lan"}, ClusterNetworks: []string{"10.244.0.0/16", "10.96.0.0/12"}, ExtraCAs: []string{"ca.pem"},
		Registries: []network.Registry{{Host: "docker.io", Mirrors: []string{"https://mirror.lan", "https://second.lan"}, CA: "mirror.pem"}, {Host: "registry.lan:5000", PlainHTTP: true}}}
	if !reflect.DeepEqual(d.values, want) {
		t.Errorf("got %+v", d.values)
	}
	if len(d.given) != len(Fields()) {
		t.Errorf("given are %v: a field of Spec is missing from this test, or from the reader", d.given)
	}
	if d.origins["cni"] != "f.yaml:7:6" || d.origins["providers=qemu"] != "f.yaml:12:22" {
		t.Errorf("%v", d.origins)
	}
}

func TestEveryFieldCanBeSaidInAFile(t *testing.T) {
	typ := reflect.TypeFor[Spec]()
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() && (f.Tag.Get("key") == "" || !strings.HasPrefix(f.Tag.Get("flag"), "--")) {
			t.Errorf("%s has no key or no flag", f.Name)
		}
	}
}

func TestReadProblems(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"f.yaml: is empty; a box file is YAML"}},
		{"comment only", "# hello\n", []string{"f.yaml: is empty"}},
		{"no mapping", "- a\n", []string{"f.yaml:1:1: holds no box"}},
		{"no YAML", "a: b: c\n", []string{"f.yaml:1: mapping values are not allowed"}},
		{"open quote", head + "cni: \"calico\n", []string{"f.yaml:3: found unexpected end of stream"}},
		{"no header", "cni: calico\n", []string{"f.yaml:1:1: apiVersion: is required", "f.yaml:1:1: kind: is required"}},
		{"other header", "apiVersion: v1\nkind: Pod\n", []string{"f.yaml:1:13: apiVersion v1: is not known; use wbox.dev/v1alpha1", "f.yaml:2:7: kind Pod: is not known; use Box"}},
		{"null header", "apiVersion:\nkind: []\n", []string{"f.yaml:1:12: apiVersion: has no value", "f.yaml:2:7: kind […]: is not a text"}},
		{"typo", head + "edtion: core\n", []string{"f.yaml:3:1: edtion: is not known; did you mean edition?"}},
		{"a flag's name", head + "k8s-base: v1.37.2\nprovider: [libvirt]\n", []string{"f.yaml:3:1: k8s-base: is not known; did you mean k8sBase?",
			"f.yaml:4:1: provider: is not known; did you mean providers?"}},
		{"swapped letters", head + "widnows: 2022\n", []string{"did you mean windows?"}},
		{"nothing near", head + "frobnicate: 1\n", []string{"frobnicate: is not known; known are apiVersion, kind, preset, k8s, "}},
		{"twice", head + "cni: calico\nwindows: 2022\ncni: antrea\n", []string{"f.yaml:5:1: cni: is there twice, first in line 3; remove one"}},
		{"wrong types", head + "cpus: two\ncni: [a]\nallowEmulation: 1\nproviders: libvirt\nname: {a: b}\nrevision: 1.5\nmemory: true\ndiskGiB: 0x40\n", []string{
			"f.yaml:3:7: cpus two: is not a whole number; write it as cpus: 2", "f.yaml:4:6: cni […]: is not a text",
			"f.yaml:5:17: allowEmulation 1: is neither true nor false", "f.yaml:6:12: providers libvirt: is not a list; write it as providers: [libvirt]",
			"f.yaml:7:7: name {…}: is not a text", "f.yaml:8:11: revision 1.5: is not a whole number",
			`f.yaml:9:9: memory true: is true or false, not a text; put it in quotes if it is meant: "true"`, "f.yaml:10:10: diskGiB 0x40: is not a whole number"}},
		{"no value", head + "cni:\nproviders: []\n", []string{"f.yaml:3:5: cni: has no value", "f.yaml:4:12: providers: is an empty list"}},
		{"bad element", head + "providers: [libvirt, null]\n", []string{"f.yaml:3:22: providers[1]: has no value"}},
		{"registries", head + "registries:\n- docker.io\n- {mirror: [https://m], ca: }\n- {host: a.b, plainHTTP: 1, host: c.d}\n- {host: e.f, mirrors: https://m}\n", []string{
			"f.yaml:4:3: registries[0] docker.io: is not a registry", "f.yaml:5:4: registries[1].mirror: is not known; did you mean mirrors?",
			"registries[1].ca: has no value", "f.yaml:5:3: registries[1].host: is required", "registries[2].plainHTTP 1: is neither", "registries[2].host: is there twice",
			"registries[3].mirrors https://m: is not a list"}},
		{"no registries", head + "registries: docker.io\nnoProxy: .lan\n", []string{"registries docker.io: is not a list of registries", "noProxy .lan: is not a list; write it as noProxy: [.example.com]"}},
		{"a tag", head + "cni: !secret x\n", []string{"f.yaml:3:6: cni x: is not a text"}},
		{"merge key", head + "<<: {cni: calico}\n", []string{"f.yaml:3:1: <<: is not known"}},
		{"two documents", head + "---\n" + head, []string{"f.yaml:3: a second document begins"}},
		{"too large", head + strings.Repeat("#", largestFile), []string{"f.yaml: is too large"}},
		{"no UTF-8", head + "cni: \xff\xfe\n", []string{"f.yaml: "}},
	} {
		d := read("f.yaml", []byte(c.text))
		got := texts(d.problems)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d problems, want %d: %q", c.name, len(got), len(c.want), got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", c.name, got[i], c.want[i])
			}
			if fault.ClassOf(d.problems[i]) != fault.Usage || !strings.Contains(got[i], "; ") {
				t.Errorf("%s: %q: wrong class, or no word on what to do", c.name, got[i])
			}
		}
	}
}

func TestReadTakesAliasesAndBOM(t *testing.T) {
	d := read("f.yaml", []byte("\ufeff"+strings.ReplaceAll(head, "\n", "\r\n")+"name: &n a/b\r\nk8s: *n\r\n"))
	if len(d.problems) != 0 || d.values.K8s != "a/b" {
		t.Errorf("%+v %v", d.values, texts(d.problems))
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("ein Ordner ü/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, k8s, want string }{
		{"ein Ordner ü/wbox.yaml", "bin", "./ein Ordner ü/bin"},
		{"ein Ordner ü/wbox.yaml", "../bin", "./bin"},
		{"wbox.yaml", "./master", "./master"},
		{"wbox.yaml", "v1.37.2", "v1.37.2"},
		{"sub/wbox.yaml", "v1.37.2", "v1.37.2"},
		{"sub/wbox.yaml", "../../x", "../x"},
		{"sub/wbox.yaml", "/abs/bin", "/abs/bin"},
		{"sub/wbox.yaml", "ci/latest", "ci/latest"},
	} {
		write(t, c.file, head+"k8s: "+c.k8s+"\niso: w.iso\ncontainerd: https://example.org/c\n")
		s, err := Load(Layer{}, c.file, "")
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(c.file)
		if filepath.ToSlash(s.K8s) != c.want || s.ISO != filepath.Join(dir, "w.iso") || s.Containerd != "https://example.org/c" || s.Output != "" {
			t.Errorf("%s, %s: %s, %s, %s", c.file, c.k8s, s.K8s, s.ISO, s.Containerd)
		}
	}
}

func TestFlagsOverFileOverPreset(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "b.yaml", head+"preset: ws2025-none\ncni: antrea\nk8s: v1.37.2\nproviders: [qemu]\ncpus: 3\n")
	flags := FromFlags(&Spec{K8s: "v1.36.3", CPUs: 0, CNI: "not given"}, func(f string) bool { return f == "k8s" || f == "cpus" })
	s, err := Load(flags, "b.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	if s.K8s != "v1.36.3" || s.CNI != "antrea" || s.Windows != "2025" || s.CPUs != 0 || s.Providers[0] != "qemu" {
		t.Errorf("%+v", s)
	}
	for flag, want := range map[string]string{"--k8s": "", "--cpus": "", "--cni": "b.yaml:4:6", "--windows": "preset ws2025-none", "--iso": "", "--none": ""} {
		if got := s.Origin(flag); got != want {
			t.Errorf("%s comes from %q, want %q", flag, got, want)
		}
	}
	if s, err = Load(flags, "b.yaml", "ws2022-calico"); err != nil || s.Windows != "2022" || s.CNI != "antrea" {
		t.Errorf("--preset over the file's: %+v, %v", s, err)
	}
	s.Default()
	got := s.Locate(fault.Check(s.Validate(), &fault.Problem{Field: "--iso", Why: "is required"}, errors.New("plain")))
	want := "b.yaml:6:13: providers qemu: vagrant-qemu reads"
	if all := strings.Split(got.Error(), "\n"); len(all) != 3 || !strings.HasPrefix(all[0], want) || all[1] != "--iso: is required" || all[2] != "plain" {
		t.Errorf("%v", got)
	}
}

func TestLoadReportsEverythingAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "b.yaml", head+"preset: ws2022-calic\nedtion: core\nwindows: 2016\ncpus: [1]\n")
	_, err := Load(FromFlags(&Spec{CNI: "weave"}, func(f string) bool { return f == "cni" }), "b.yaml", "")
	got := texts(err.(*fault.Preflight).Errs) //nolint:errorlint,forcetypeassert // its documented type
	for i, want := range []string{"b.yaml:4:1: edtion: is not known; did you mean edition?", "b.yaml:6:7: cpus […]: is not a whole number",
		"b.yaml:3:9: preset ws2022-calic: is not known; did you mean ws2022-calico?", "--cni weave: is not known", "b.yaml:5:10: windows 2016: is not known"} {
		if len(got) != 5 || !strings.HasPrefix(got[i], want) {
			t.Fatalf("%q, want %q as number %d", got, want, i)
		}
	}
	for file, want := range map[string]string{"none.yaml": "-f none.yaml: does not exist", ".": "-f .: is a folder"} {
		if _, err := Load(Layer{}, file, ""); err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Usage {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := Load(Layer{}, "", "../answer/x"); err == nil || !strings.Contains(err.Error(), "--preset ../answer/x: is not known") {
		t.Errorf("%v", err)
	}
}

func TestPresetsAreGood(t *testing.T) {
	if len(Presets()) < 3 || !slices.Contains(Presets(), "ws2022-calico") {
		t.Fatalf("presets are %v", Presets())
	}
	for _, p := range Presets() {
		s, err := Load(Layer{}, "", p)
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if want := "ws" + s.Windows + "-" + s.CNI; p != want {
			t.Errorf("the preset %s would be better called %s", p, want)
		}
		s.K8s = "v1.37.2"
		s.Default()
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestNearest(t *testing.T) {
	for text, want := range map[string]string{"cin": "cni", "CNI": "cni", "disk": "", "diskgib": "diskGiB", "out": "", "ouput": "output", "k8sversoin": "k8sVersion",
		"": "", "x": "", "allow_emulation": "allowEmulation", strings.Repeat("memory", 1000): ""} {
		if got := Nearest(text, Keys()); got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
}

func TestSelectionIsTheSameOnAnotherMachine(t *testing.T) {
	a := &Spec{K8s: "./bin", ISO: "a.iso", Containerd: "/x", Name: "me/a", CPUs: 9}
	b := &Spec{K8s: "../other/bin", ISO: "/b/b.iso", Containerd: "/y", Revision: 3, Memory: "3GiB", Output: "z"}
	a.Default()
	b.Default()
	if got := a.Selection(); !reflect.DeepEqual(got, b.Selection()) || got["k8s"] != "folder" || got["containerd"] != "folder" || got["k8sBase"] != "" {
		t.Errorf("%v, %v", a.Selection(), b.Selection())
	}
	b.CNI = "calico"
	if reflect.DeepEqual(a.Selection(), b.Selection()) {
		t.Error("another CNI is the same selection")
	}
}

func TestSecretsStayOutOfASelection(t *testing.T) {
	s := &Spec{K8s: "git:https://me:token@example.org/k.git@my-branch"}
	s.Default()
	if got := s.Selection()["k8s"]; got != "git:https://example.org/k.git@my-branch" {
		t.Errorf("got %s", got)
	}
	if got := Public("https://me:pw@example.org/a/kubelet.exe?sig=1"); got != "https://example.org/a/kubelet.exe" {
		t.Errorf("got %s", got)
	}
	for _, text := range []string{"git:git@example.org:k.git@main", "https://example.org/a@b", "v1.37.2"} {
		if got := Public(text); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// FuzzRead feeds files of any kind: no panic, and every problem has a place and
// is fit to be printed.
func FuzzRead(f *testing.F) {
	f.Add([]byte(head + "preset: ws2022-calico\nk8s: v1.37.2\niso: w.iso\nproviders: [libvirt]\n"))
	f.Add([]byte(head + "cpus: two\ncni: {a: [b]}\n? [x]\n: y\n"))
	f.Add([]byte("a: &a [*a]\nb: *a\nname: *a\n"))
	f.Add([]byte("%YAML 1.1\n--- !!map\n{kind: !!binary aGVsbG8=, apiVersion: |-\n  x\n}\n..."))
	f.Add([]byte{0xff, 0xfe, 'a', 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := read("f.yaml", data)
		for _, p := range d.problems {
			text := p.Error()
			if !strings.HasPrefix(text, "f.yaml") || strings.ContainsAny(text, "\n\x00\x1b") {
				t.Errorf("%q", text)
			}
		}
		if len(d.problems) == 0 && (d.APIVersion != APIVersion || d.Kind != Kind || len(d.origins) < len(d.given)) {
			t.Errorf("%+v is no box file, and nothing was said", d)
		}
	})
}

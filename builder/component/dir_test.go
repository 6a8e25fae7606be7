package component

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/component/componenttest"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// copyTo copies a file into a folder under another name.
func copyTo(t *testing.T, from, dir, name string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDir(t *testing.T) {
	dir := componenttest.Programs(t, "antrea", "v2.7.0", "./cmd/antrea-agent", "./cmd/antrea-cni", "./cmd/antctl")
	if err := os.Rename(filepath.Join(dir, "antrea-cni.exe"), filepath.Join(dir, "Antrea.EXE")); err != nil { // as images call it
		t.Fatal(err)
	}
	copyTo(t, filepath.Join(dir, "antctl.exe"), dir, "host-local.exe") // any program for Windows
	copyTo(t, filepath.Join(dir, "antctl.exe"), dir, "setup.exe")
	src, ref, err := resolve(t, request(t, Antrea, dir), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ref.Source != "dir" || len(ref.Inputs) != 4 || ref.Inputs["antrea-cni.exe"] == "" || ref.Inputs["setup.exe"] != "" {
		t.Errorf("got %+v", ref)
	}
	bits, _ := fetch(t, src, ref)
	if want := []string{"antctl.exe", "antrea-agent.exe", "antrea-cni.exe", "host-local.exe"}; !reflect.DeepEqual(files(bits), want) {
		t.Errorf("got %v", files(bits))
	}
	copyTo(t, filepath.Join(dir, "Antrea.EXE"), dir, "host-local.exe")
	if _, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("another file: got %v", err)
	}
}

func TestDirRefuses(t *testing.T) {
	dir := componenttest.Programs(t, "antrea", "v2.7.0", "./cmd/antrea-agent", "./cmd/antctl")
	for name, c := range map[string]struct {
		change func(dir string) error
		says   []string
	}{
		"lacks a program": {func(string) error { return nil }, []string{"has no antrea-cni.exe"}},
		"another program": {func(d string) error {
			return os.Rename(filepath.Join(d, "antctl.exe"), filepath.Join(d, "antrea-cni.exe"))
		}, []string{"antrea-cni.exe: is refused", "cmd/antctl"}},
		"a web page":       {func(d string) error { return os.WriteFile(filepath.Join(d, "antrea-cni.exe"), []byte("<html>"), 0o644) }, []string{"an HTML page"}},
		"two things wrong": {func(d string) error { return os.WriteFile(filepath.Join(d, "antctl.exe"), nil, 0o644) }, []string{"is empty", "has no antrea-cni.exe"}},
		"a folder":         {func(d string) error { return os.Mkdir(filepath.Join(d, "antrea-cni.exe"), 0o755) }, []string{"no regular file"}},
	} {
		d := t.TempDir()
		for _, f := range []string{"antrea-agent.exe", "antctl.exe"} {
			copyTo(t, filepath.Join(dir, f), d, f)
		}
		if err := c.change(d); err != nil {
			t.Fatal(err)
		}
		_, _, err := resolve(t, Request{Project: Antrea, Form: Path, Path: d}, Options{})
		for _, says := range c.says {
			if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--cni") {
				t.Errorf("%s: got %v, want %q", name, err, says)
			}
		}
	}
	for _, c := range []struct{ project, path, says string }{
		{Containerd, filepath.Join(dir, "nowhere"), "does not exist"},
		{Containerd, os.DevNull, "neither a folder nor a file"},
		{Containerd, dir, "has no containerd.exe, no ctr.exe, no containerd-shim-runhcs-v1.exe"},
	} {
		_, _, err := resolve(t, Request{Project: c.project, Form: Path, Path: c.path}, Options{})
		if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.path, err, c.says)
		}
	}
}

// Calico's second plugin is a copy of the first, whatever the source.
func TestDirOfCalico(t *testing.T) {
	dir := componenttest.Programs(t, "calico", "v3.32.1", "./cni-plugin/cmd/calico", "./node/cmd/calico-node")
	src, ref, err := resolve(t, request(t, Calico, "calico@"+dir), Options{})
	if err != nil {
		t.Fatal(err)
	}
	bits, _ := fetch(t, src, ref)
	if want := []string{"calico-ipam.exe", "calico-node.exe", "calico.exe"}; !reflect.DeepEqual(files(bits), want) || bits.Binaries[0].SHA256 != bits.Binaries[2].SHA256 {
		t.Errorf("got %+v", bits.Binaries)
	}
}

// A source tree of something else is refused by name; flannel's is not compiled.
func TestTreeOfAnotherProject(t *testing.T) {
	for _, c := range []struct{ project, fixture, says string }{
		{Calico, "antrea", "is a source tree of antrea.io/antrea/v2, not of Calico"},
		{Containerd, "calico", "not of containerd"},
		{Flannel, "flannel", "it needs cgo"},
	} {
		dir := t.TempDir()
		if err := componenttest.Tree(dir, c.fixture); err != nil {
			t.Fatal(err)
		}
		if _, _, err := resolve(t, Request{Project: c.project, Form: Path, Path: dir}, Options{}); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.fixture, err, c.says)
		}
	}
}

// Every program of a project has a place, and every place a program.
func TestPlaces(t *testing.T) {
	for _, p := range []*project{antrea(), calico(), flannel()} {
		places := map[string]bool{}
		for _, at := range Places(p.name) {
			if places[at.File] || len(at.To) == 0 {
				t.Errorf("%s: %s is there twice or goes nowhere", p.name, at.File)
			}
			places[at.File] = true
		}
		for _, r := range p.ready {
			if !places[r.name+".exe"] {
				t.Errorf("%s: %s goes nowhere", p.name, r.name)
			}
		}
		if len(places) != len(p.ready) {
			t.Errorf("%s: %d places, %d programs", p.name, len(places), len(p.ready))
		}
	}
}

// The shim's version comes from the script's file, else from go.mod.
func TestShimVersion(t *testing.T) {
	for _, c := range []struct{ file, gomod, want string }{
		{"v0.15.0-rc.3\n", "module x\nrequire github.com/Microsoft/hcsshim v0.15.0-rc.1\n", "v0.15.0-rc.3"},
		{"", "module x\nrequire github.com/Microsoft/hcsshim v0.15.0-rc.1\n", "v0.15.0-rc.1"},
		{"$(rm -rf)", "module x\n", ""},
	} {
		got := shimVersion(tree{read: func(name string) ([]byte, error) {
			switch {
			case name == "go.mod":
				return []byte(c.gomod), nil
			case c.file == "":
				return nil, os.ErrNotExist
			}
			return []byte(c.file), nil
		}})
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.file, got, c.want)
		}
	}
}

// Versions of trees that lack what they are usually told by.
func TestVersionsWithoutTags(t *testing.T) {
	for _, c := range []struct{ project, file, text, want string }{
		{Antrea, "VERSION", "v2.8.0-dev\n", "v2.8.0-dev-unknown"},
		{Antrea, "", "", ""},
		{Calico, "", "", "unknown"},
		{Containerd, "version/version.go", "package version\n\nvar (\n\tVersion = \"2.4.0-beta+unknown\"\n)\n", "v2.4.0-beta+unknown"},
		{Containerd, "", "", ""},
	} {
		p := projectOf(c.project)
		got := p.version(tree{read: func(name string) ([]byte, error) {
			if name != c.file {
				return nil, os.ErrNotExist
			}
			return []byte(c.text), nil
		}, facts: gosource.Facts{Archive: true}})
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.project, got, c.want)
		}
	}
}

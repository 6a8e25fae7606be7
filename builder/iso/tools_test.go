package iso_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

func TestMediaOfRealTools(t *testing.T) {
	big := noise(12 << 20)
	path := isotest.WindowsMedia(t, t.TempDir(), isotest.Options{
		StandIn: &iso.StandIn{StandIn: true, Version: "9"},
		Files: map[string][]byte{
			"sources/boot.wim": big, "Größe.txt": []byte("x"), "日本語/empty": nil, "a/b/c/d/e/f/g/deep.txt": []byte("deep"),
		},
	})
	m, err := iso.Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Editions { // of which wimlib has its own opinion
		m.Editions[i].Bytes = 3
	}
	if want := isotest.Editions("2022"); !reflect.DeepEqual(m.Editions, want) {
		t.Errorf("got  %+v\nwant %+v", m.Editions, want)
	}
	if m.Label != isotest.Label || m.StandIn == nil || m.StandIn.Version != "9" {
		t.Errorf("%q, %+v", m.Label, m.StandIn)
	}
	img, err := iso.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	got, err := fs.ReadFile(img.FS(), "SOURCES/BOOT.WIM")
	if err != nil || !bytes.Equal(got, big) {
		t.Errorf("boot.wim: %d bytes, %v", len(got), err)
	}
	for name, want := range map[string]string{"Größe.txt": "x", "日本語/empty": "", "setup.exe": "MZ"} {
		if got, err := fs.ReadFile(img.FS(), name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	deep, err := fs.Sub(img.FS(), "A")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(deep, "b/c/d/e/f/g/deep.txt"); err != nil {
		t.Error(err)
	}
	if img.VolumeID() != isotest.Label {
		t.Errorf("volume %q", img.VolumeID())
	}
}

func TestISO9660OfRealTools(t *testing.T) {
	genisoimage := tool(t, "genisoimage")
	dir := t.TempDir()
	root := filepath.Join(dir, "tree")
	if err := os.MkdirAll(filepath.Join(root, "Folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "Folder", "A long name.text"), []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"Folder/A long name.text": {"-J"}, "FOLDER/A_LONG_N.TEX": nil} {
		path := filepath.Join(dir, "x.iso")
		run(t, genisoimage, append(args, "-quiet", "-V", "LABEL", "-o", path, root)...)
		img, err := iso.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(img.FS(), name)
		if err != nil || string(got) != "content" || img.Label() != "LABEL" {
			t.Errorf("%v: %q, %v, label %q", args, got, err, img.Label())
		}
		img.Close()
	}
}

// TestSeedReadByOthers lets other programs list the seed.
func TestSeedReadByOthers(t *testing.T) {
	files := seedFiles()
	path := file(t, seed(t, files...))
	var want []string
	for _, f := range files {
		want = append(want, f.Path)
	}
	slices.Sort(want)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"bsdtar", []string{"-tf", path}},
		{"isoinfo", []string{"-J", "-f", "-i", path}},
		{"xorriso", []string{"-read_fs", "norock", "-indev", path, "-find", "/", "-type", "f"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := run(t, tool(t, c.name), c.args...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			for i := range lines {
				lines[i] = strings.TrimPrefix(strings.Trim(strings.TrimSpace(lines[i]), "'"), "/")
			}
			for _, w := range want {
				if c.name == "isoinfo" && strings.ContainsFunc(w, func(r rune) bool { return r > 127 }) {
					continue // it writes no UTF-8
				}
				if !slices.Contains(lines, w) {
					t.Errorf("%s is not listed", w)
				}
			}
		})
	}
	t.Run("content", func(t *testing.T) {
		dir := t.TempDir()
		run(t, tool(t, "bsdtar"), "-xf", path, "-C", dir)
		for _, f := range files {
			got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Path)))
			if err != nil || !bytes.Equal(got, content(t, f)) {
				t.Errorf("%s: %d bytes, %v", f.Path, len(got), err)
			}
		}
	})
}

// TestFixturesReadBy7Zip checks what isotest writes with a reader of UDF that
// isn't ours. (It knows no chained descriptors and no holes.)
func TestFixturesReadBy7Zip(t *testing.T) {
	sevenZip, dir := tool(t, "7z"), t.TempDir()
	files := []isotest.File{
		{Path: "a/pieces", Data: noise(20000), Pieces: 5}, {Path: "日本/long", Data: noise(20000), Pieces: 5, Form: isotest.Long},
		{Path: "embedded", Data: noise(900), Form: isotest.Embedded}, {Path: "extended", Data: noise(3000), Extended: true},
	}
	run(t, sevenZip, "x", "-y", "-o"+dir, file(t, isotest.UDF{Label: "Größe", Files: files}.Bytes()))
	for _, f := range files {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Path)))
		if err != nil || !bytes.Equal(got, f.Data) {
			t.Errorf("%s: %d bytes, %v", f.Path, len(got), err)
		}
	}
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// run gives a program's output; it runs with a locale that has all characters.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, errs.String())
	}
	return string(out)
}

package isotest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wbox-dev/wbox/builder/iso"
)

// Options say what is on a medium of WindowsMedia.
type Options struct {
	Editions []iso.Edition     // nil: those of Editions("2022")
	StandIn  *iso.StandIn      // nil: none
	Files    map[string][]byte // more files, by path
}

// WindowsMedia makes an ISO in dir with the programs that make real ones:
// wimlib-imagex for sources/install.wim, whose images have one small file
// each, and genisoimage for the image, whose files are in UDF only. It skips
// the test where one of them is missing. It gives the image's path.
func WindowsMedia(t testing.TB, dir string, o Options) string {
	t.Helper()
	for _, tool := range []string{"wimlib-imagex", "genisoimage"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed (Debian: wimtools, genisoimage)", tool)
		}
	}
	if o.Editions == nil {
		o.Editions = Editions("2022")
	}
	root, content := filepath.Join(dir, "tree"), filepath.Join(dir, "content")
	put(t, filepath.Join(content, "Windows", "win.ini"), []byte("[fonts]\r\n"))
	put(t, filepath.Join(root, "setup.exe"), []byte("MZ"))
	for name, data := range o.Files {
		put(t, filepath.Join(root, filepath.FromSlash(name)), data)
	}
	if o.StandIn != nil {
		data, err := json.Marshal(o.StandIn)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(root, iso.StandInFile), data)
	}
	wim := filepath.Join(root, "sources", "install.wim")
	put(t, wim, nil)
	if err := os.Remove(wim); err != nil {
		t.Fatal(err)
	}
	verb := "capture"
	for _, e := range o.Editions {
		run(t, "wimlib-imagex", verb, content, wim, e.Name, "--compress=none")
		run(t, "wimlib-imagex", append([]string{"info", wim, fmt.Sprint(e.Index)}, properties(e)...)...)
		verb = "append"
	}
	path := filepath.Join(dir, "windows.iso")
	run(t, "genisoimage", "-quiet", "-udf", "-D", "-hide", "*", "-V", Label, "-o", path, root)
	return path
}

// properties sets what Windows' own WIMs tell of an edition.
func properties(e iso.Edition) []string {
	arch := map[string]string{"386": "0", "arm": "5", "amd64": "9", "arm64": "12"}[e.Arch]
	var out []string
	for _, p := range [][2]string{
		{"DISPLAYNAME", e.DisplayName}, {"WINDOWS/ARCH", arch}, {"WINDOWS/EDITIONID", e.EditionID},
		{"WINDOWS/INSTALLATIONTYPE", e.InstallationType}, {"WINDOWS/VERSION/BUILD", fmt.Sprint(e.Build)},
		{"WINDOWS/VERSION/SPBUILD", fmt.Sprint(e.SPBuild)},
	} {
		out = append(out, "--image-property", p[0]+"="+p[1])
	}
	for i, l := range e.Languages {
		out = append(out, "--image-property", fmt.Sprintf("WINDOWS/LANGUAGES/LANGUAGE[%d]=%s", i+1, l))
	}
	return out
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

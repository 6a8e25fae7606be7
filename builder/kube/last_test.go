package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/report"
)

// compileDir compiles a source tree and returns its programs by file name.
func compileDir(t *testing.T, dir string, opts Options) map[string]Binary {
	t.Helper()
	src := mustDir(t, dir, opts)
	ref, err := src.Resolve(t.Context(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	bits, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Binary{}
	for _, b := range bits.Binaries {
		out[b.File] = b
	}
	return out
}

// lastOf returns the files that a compile left to the next.
func lastOf(t *testing.T, opts Options) map[string]os.FileInfo {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(opts.CacheDir, "last", "*", "kube*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]os.FileInfo{}
	for _, path := range paths {
		if out[filepath.Base(path)], err = os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// After one changed file only the program that it is in is linked, and the bytes
// are those of a compile that knows no earlier one, in another folder.
func TestOnlyWhatChangedIsLinked(t *testing.T) {
	dir, _ := gitRepo(t)
	opts := Options{CacheDir: t.TempDir()}
	proxy := filepath.Join(dir, "cmd", "kube-proxy", "kube-proxy.go")
	appendTo(t, proxy, "\nvar a = os.Args[0]\n") // a dirty tree: its version stays
	compileDir(t, dir, opts)
	before := lastOf(t, opts)
	if len(before) != 4 {
		t.Fatalf("kept %v", before)
	}
	appendTo(t, proxy, "\nfunc init() { println(a) }\n")
	second := compileDir(t, dir, opts)
	for file, info := range lastOf(t, opts) {
		if linked := !os.SameFile(info, before[file]); linked != (file == "kube-proxy.exe") {
			t.Errorf("%s: linked anew: %v", file, linked)
		}
	}
	other := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for file, b := range compileDir(t, other, Options{CacheDir: t.TempDir()}) {
		if second[file].SHA256 != b.SHA256 {
			t.Errorf("%s differs from that of another folder", file)
		}
	}
}

// A program that was damaged since is not taken, whatever its build ID says.
func TestDamagedLastIsNotTaken(t *testing.T) {
	dir, _ := gitRepo(t)
	opts := Options{CacheDir: t.TempDir()}
	first := compileDir(t, dir, opts)
	for name, damage := range map[string]func(path string) error{
		"a byte":      func(path string) error { return flip(path, -1) },
		"a text file": func(path string) error { return os.WriteFile(path, []byte("no program"), 0o644) },
		"a folder":    func(path string) error { return replaceByFolder(path) },
	} {
		paths, err := filepath.Glob(filepath.Join(opts.CacheDir, "last", "*", "kubelet.exe"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("%s: kept %v, %v", name, paths, err)
		}
		if err := damage(paths[0]); err != nil {
			t.Fatal(err)
		}
		for file, b := range compileDir(t, dir, opts) {
			if b.SHA256 != first[file].SHA256 {
				t.Errorf("%s: %s is %s, was %s", name, file, b.SHA256, first[file].SHA256)
			}
		}
	}
}

// flip changes one byte of a file, counted from its end if negative.
func flip(path string, at int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[(at+len(data))%len(data)] ^= 0xff
	return os.WriteFile(path, data, 0o755)
}

func replaceByFolder(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o755)
}

// Where nothing changed, the go command is asked what it is and nothing else.
func TestNothingChangedStartsNoCompiler(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the go command is wrapped in a shell script")
	}
	dir, _ := gitRepo(t)
	appendTo(t, filepath.Join(dir, "cmd", "kubelet", "kubelet.go"), "// mine\n")
	opts, log := Options{CacheDir: t.TempDir()}, ""
	opts.Go, log = loggingGo(t)
	out := filepath.Join(t.TempDir(), "bin")
	calls := func() map[string]int {
		t.Helper()
		if err := os.RemoveAll(log); err != nil {
			t.Fatal(err)
		}
		src := mustDir(t, dir, opts)
		ref, err := src.Resolve(t.Context(), report.Discard)
		if err == nil {
			_, _, err = Get(t.Context(), src, ref, opts, out, report.Discard)
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for _, verb := range strings.Fields(string(data)) {
			n[verb]++
		}
		return n
	}
	if n := calls(); n["build"] != 1 || n["list"] != 1 {
		t.Errorf("the first time: %v", n)
	}
	placed, err := os.Stat(filepath.Join(out, "kubelet.exe"))
	if err != nil {
		t.Fatal(err)
	}
	if n := calls(); n["build"]+n["list"] != 0 || n["env"] == 0 {
		t.Errorf("nothing changed: %v", n)
	}
	if again, err := os.Stat(filepath.Join(out, "kubelet.exe")); err != nil || !os.SameFile(placed, again) {
		t.Errorf("nothing changed: kubelet.exe was written again (%v)", err)
	}
	appendTo(t, filepath.Join(dir, "cmd", "kubelet", "kubelet.go"), "// mine again\n")
	if n := calls(); n["build"] != 1 || n["list"] != 0 {
		t.Errorf("one file changed: %v", n)
	}
}

// loggingGo returns a go command that notes the verb of each call.
func loggingGo(t *testing.T) (path, log string) {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	path, log = filepath.Join(dir, "go"), filepath.Join(dir, "log")
	script := "#!/bin/sh\necho \"$1\" >>'" + log + "'\nexec '" + real + "' \"$@\"\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path, log
}

package kube

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/wine"
	"github.com/wbox-dev/wbox/builder/report"
)

// fakeWine puts a wine into place that runs body for a program and notes its
// command line.
func fakeWine(t *testing.T, body string) (log string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no wine")
	}
	dir := t.TempDir()
	path, log := filepath.Join(dir, "wine"), filepath.Join(dir, "log")
	script := "#!/bin/sh\nif [ \"$1\" = wineboot ]; then mkdir -p \"$WINEPREFIX/drive_c/windows/system32\"; exit; fi\n" +
		"echo \"$@\" >>'" + log + "'\n" + body + "\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(wine.Variable, path)
	return log
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// bitsToTry are files whose content doesn't matter to who runs them.
func bitsToTry(t *testing.T) (Bits, string) {
	t.Helper()
	bits := Bits{Ref: Ref{Version: "v1.37.2"}}
	for _, name := range Programs() {
		bits.Binaries = append(bits.Binaries, Binary{Name: name, File: name + ".exe", SHA256: "of " + name, From: "./bin/" + name + ".exe"})
	}
	return bits, t.TempDir()
}

func TestTryOutOnce(t *testing.T) {
	log := fakeWine(t, "echo Kubernetes v1.37.2")
	bits, dir := bitsToTry(t)
	opts := Options{CacheDir: t.TempDir()}
	for range 2 {
		if err := opts.tryOut(t.Context(), bits, dir, true, report.Discard); err != nil {
			t.Fatal(err)
		}
	}
	ran := strings.Join(linesOf(t, log), "\n")
	want := filepath.Join(dir, "kubeadm.exe") + " config images list --kubernetes-version v1.37.2\n" + filepath.Join(dir, "kubelet.exe") + " --version"
	if ran != want {
		t.Errorf("ran %q, want %q", ran, want)
	}
	bits.Binaries[3].SHA256 = "of another kubelet"
	if err := opts.tryOut(t.Context(), bits, dir, true, report.Discard); err != nil || len(linesOf(t, log)) != 3 {
		t.Errorf("another kubelet.exe: ran %q, %v", linesOf(t, log), err)
	}
}

func TestTryOutRefuses(t *testing.T) {
	for body, says := range map[string]string{
		"echo Kubernetes v1.36.3":              "gives a kubelet.exe that fails when it is run (--version): it says that it is v1.36.3, not v1.37.2",
		"echo 'Kubernetes v0.0.0-master+$F'":   "gives a kubelet.exe",
		"echo unhandled exception >&2; exit 3": "unhandled exception",
		"exit 3":                               "gives a kubeadm.exe that fails when it is run (config images list --kubernetes-version v1.37.2)",
	} {
		log := fakeWine(t, body)
		bits, dir := bitsToTry(t)
		opts := Options{CacheDir: t.TempDir()}
		err := opts.tryOut(t.Context(), bits, dir, true, report.Discard)
		if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "WBOX_WINE=none") {
			t.Errorf("%s: got %v", body, err)
		}
		// A folder's programs are its owner's business: a warning each.
		rec := &recorder{}
		if err := opts.tryOut(t.Context(), bits, dir, false, rec); err != nil {
			t.Errorf("%s: of a folder: %v", body, err)
		}
		if w := rec.messages(report.Warning); len(w) == 0 || !strings.Contains(strings.Join(w, "\n"), "./bin/kube") {
			t.Errorf("%s: of a folder: warned of %q", body, w)
		}
		// A failed run is not remembered.
		before := len(linesOf(t, log))
		if err := opts.tryOut(t.Context(), bits, dir, false, report.Discard); err != nil {
			t.Error(err)
		}
		if strings.Contains(body, "exit") && len(linesOf(t, log)) == before {
			t.Errorf("%s: the failure was remembered", body)
		}
	}
}

// What can't be run is said, and stops nothing.
func TestTryOutWithoutWine(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "wine")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("Windows needs no wine")
	}
	bits, dir := bitsToTry(t)
	for value, says := range map[string]string{"none": "WBOX_WINE says that there is no wine", broken: "setting up wine"} {
		t.Setenv(wine.Variable, value)
		opts, rec := Options{CacheDir: t.TempDir()}, &recorder{}
		if err := opts.tryOut(t.Context(), bits, dir, true, rec); err != nil {
			t.Error(err)
		}
		if n := rec.messages(report.Note); len(n) != 1 || !strings.Contains(n[0], says) {
			t.Errorf("%s: said %q", value, n)
		}
		if _, err := os.Stat(filepath.Join(opts.CacheDir, "wine")); err == nil {
			t.Errorf("%s: half a prefix was left", value)
		}
	}
}

package kube

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wbox-dev/wbox/builder/internal/wine"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

func TestPrintedVersion(t *testing.T) {
	for out, want := range map[string]string{
		"Kubernetes v1.36.3\r\n":                        "v1.36.3",
		"noise\nKubernetes v1.38.0-alpha.0.2+0123abc\n": "v1.38.0-alpha.0.2+0123abc",
		"Kubernetes v0.0.0-master+$Format:%H$\n":        "",
		"kubelet\n":                                     "",
		"":                                              "",
	} {
		got, err := printedVersion(out)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", out, got, err)
		}
	}
}

func FuzzPrintedVersion(f *testing.F) {
	f.Add("Kubernetes v1.36.3\r\n")
	f.Fuzz(func(t *testing.T, out string) {
		if v, err := printedVersion(out); err == nil {
			if again, err := normalizeVersion(v, true); err != nil || again != v {
				t.Errorf("%q gives %q", out, v)
			}
		}
	})
}

// sharedEnv names a folder that the tests of one process share.
const sharedEnv = "WBOX_TEST_SHARED"

// The tests of this package run nothing under wine unless they say so.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "wbox-kube-test-")
	for name, value := range map[string]string{sharedEnv: dir, wine.Variable: "none"} {
		err = errors.Join(err, os.Setenv(name, value))
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// The folder's own program tells its version, where there is a wine, and so do
// the programs of every other source. What was run once is not run again.
func TestProgramsAreRunUnderWine(t *testing.T) {
	if testing.Short() {
		t.Skip("starts wine")
	}
	t.Setenv(wine.Variable, "")
	if _, err := wine.Find(); err != nil {
		t.Skip(err)
	}
	cache := t.TempDir()
	dir := kubetest.Fixture(t, t.TempDir(), "v1.38.0-alpha.1.5+0123abcd")
	ref, err := mustDir(t, dir, Options{CacheDir: cache}).Resolve(t.Context(), report.Discard)
	if err != nil || ref.Version != "v1.38.0-alpha.1.5+0123abcd" {
		t.Errorf("got %q, %v", ref.Version, err)
	}
	if _, err := os.Stat(filepath.Join(cache, "wine")); err != nil {
		t.Error(err)
	}
	repo, _ := gitRepo(t)
	_, bucket := bucketServer(t)
	module := proxySource(t, "v1.37.2", kubetest.Release{Version: "v1.37.2", Commit: fixtureCommit, Time: fixtureDate, GoVersion: hostGo(t)})
	for text, opts := range map[string]Options{dir: {}, repo: {}, "git:" + repo + "@master": {}, "release/v1.37.2": bucket, "v1.37.2": module.opts} {
		opts.CacheDir = cache
		src, ref, err := resolveText(t, text, opts, report.Discard)
		if err != nil {
			t.Fatal(err)
		}
		rec := &recorder{}
		if _, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), rec); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if n := rec.messages(report.Note); len(n) != 0 {
			t.Errorf("%s: %q", text, n)
		}
	}
	said, err := filepath.Glob(filepath.Join(cache, "said", "*"))
	if err != nil || len(said) < 6 { // each source's kubelet.exe and kubeadm.exe, some of which are the same
		t.Errorf("kept what %d runs printed, %v", len(said), err)
	}
}

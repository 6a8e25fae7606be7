package kube

import (
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

// The folder's own program tells its version, where there is a wine.
func TestDirAsksTheProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("starts wine")
	}
	if _, err := wine.Find(); err != nil {
		t.Skip(err)
	}
	dir, cache := kubetest.Fixture(t, t.TempDir(), "v1.38.0-alpha.1.5+0123abcd"), t.TempDir()
	ref, err := mustDir(t, dir, Options{CacheDir: cache}).Resolve(t.Context(), report.Discard)
	if err != nil || ref.Version != "v1.38.0-alpha.1.5+0123abcd" {
		t.Errorf("got %q, %v", ref.Version, err)
	}
	if _, err := os.Stat(filepath.Join(cache, "wine")); err != nil {
		t.Error(err)
	}
}

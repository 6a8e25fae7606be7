package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/component/componenttest"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/spec"
)

// aBundle makes one, of a stand-in's medium and with containerd.
func aBundle(t *testing.T, withISO bool) (*Builder, *spec.Spec, *Bundled) {
	t.Helper()
	standIn := acting()
	standIn.Containerd = "1.6.20" // which imports images there
	b, s := resolving(t, bin(t), fast(), standIn)
	s.Containerd, s.CNI = filepath.Join(t.TempDir(), "containerd"), componenttest.Programs(t, "calico", "v3.32.1", "./cni-plugin/cmd/calico")
	for project, packages := range map[string][]string{"containerd": {"./cmd/containerd", "./cmd/ctr"}, "hcsshim": {"./cmd/containerd-shim-runhcs-v1"}} {
		if err := componenttest.Compile(t.Context(), s.Containerd, project, "v1.7.28", packages...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Containerd, "version"), []byte("v1.7.28\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reg, mirrors := mirrorOf(t)
	s.Preload, s.Registries = []string{"pause"}, mirrors
	r, err := b.Resolve(t.Context(), s, ResolveOptions{PlanOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	made, err := b.Bundle(t.Context(), r, filepath.Join(t.TempDir(), "new", "bundle"), withISO)
	if err != nil {
		t.Fatal(err)
	}
	reg.Close() // whatever a bundle needs is in it
	return b, s, made
}

// A bundle is resolved for a build, on a host with a driver and nothing but the
// folder, and everything in it is pinned.
func TestBundleIsBuiltFrom(t *testing.T) {
	needQemuImg(t)
	_, s, made := aBundle(t, true)
	for _, gone := range []string{s.K8s, s.Containerd, s.CNI, s.ISO} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	other, _ := resolving(t, "", fast(), acting())
	load := func() *spec.Spec {
		got, err := spec.Load(spec.Layer{}, filepath.Join(made.Dir, spec.DefaultFile), "")
		if err != nil {
			t.Fatal(err)
		}
		got.Output = filepath.Join(t.TempDir(), "out")
		return got
	}
	frozen := ResolveOptions{Offline: true, Pins: Pins{Path: filepath.Join(made.Dir, lock.FileName), Frozen: true}}
	r, err := other.Resolve(t.Context(), load(), frozen)
	if err != nil {
		t.Fatal(err)
	}
	if r.Ref.Version != "v1.37.2" || r.ISODigest != made.ISODigest || r.runtime.ref.Version != "v1.7.28" || r.cni.project != "calico" || len(r.cni.ref.Inputs) != 2 || len(r.preload) != 1 || r.preload[0].Images[0].Name != "registry.k8s.io/pause:3.10.1" || r.Lock.Stale() {
		t.Errorf("resolved %+v", r)
	}
	if err := other.Preflight(t.Context(), r); err != nil {
		t.Error(err)
	}

	for name, want := range map[string]string{"kubernetes/kube-proxy.exe": "--frozen", "containerd/ctr.exe": "--frozen", "cni/calico.exe": "--frozen", made.ISO: "sha256"} {
		path := filepath.Join(made.Dir, filepath.FromSlash(name))
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(before, 0), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Resolve(t.Context(), load(), frozen); err == nil || fault.ClassOf(err) != fault.Input && fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s was changed: %v", name, err)
		}
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing half is left, and nothing of anybody's is touched.
func TestBundleIsWholeOrNotThere(t *testing.T) {
	b, s, made := aBundle(t, false)
	if made.ISO != "" || made.Size == 0 {
		t.Errorf("made %+v", made)
	}
	if left := entries(t, filepath.Dir(made.Dir)); left != "bundle" {
		t.Errorf("beside it lies %s", left)
	}
	if left := entries(t, made.Dir); left != "cni containerd images kubernetes wbox.lock wbox.yaml" {
		t.Errorf("it holds %s", left)
	}
	s.Preload = nil // its registry is gone
	r, err := b.Resolve(t.Context(), s, ResolveOptions{PlanOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Bundle(t.Context(), r, made.Dir, false); fault.ClassOf(err) != fault.Usage {
		t.Errorf("a second one: %v", err)
	}
	if err := os.WriteFile(filepath.Join(s.Containerd, "ctr.exe"), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fresh := newTestBuilder(t, t.TempDir(), plenty) // one whose store does not have what was pinned
	if _, err := fresh.Bundle(t.Context(), r, filepath.Join(dir, "x"), false); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "ctr.exe") {
		t.Errorf("containerd changed: %v", err)
	}
	if left := entries(t, dir); left != "" {
		t.Errorf("left %s", left)
	}
}

func entries(t *testing.T, dir string) string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

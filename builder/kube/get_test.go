package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

func TestGetKeepsBits(t *testing.T) {
	b, opts := bucketServer(t)
	src, ref, err := resolveText(t, "release/v1.37.2", opts, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "bin")
	get := func(wantFresh bool) {
		t.Helper()
		bits, fresh, err := Get(t.Context(), src, ref, opts, dir, report.Discard)
		if err != nil || fresh != wantFresh || len(bits.Binaries) != 4 {
			t.Fatalf("got %+v, fresh %v, %v", bits, fresh, err)
		}
		for _, bin := range bits.Binaries {
			if v, err := Verify(filepath.Join(dir, bin.File), Expect{Name: bin.Name}); err != nil || v.SHA256 != bin.SHA256 {
				t.Errorf("%s: %v", bin.File, err)
			}
		}
	}
	get(true)
	get(false)
	// What is kept and was damaged is made again, from the download that is whole.
	kept, err := filepath.Glob(filepath.Join(opts.CacheDir, "bits", "*", "kubelet.exe"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if err := os.Truncate(kept[0], 1<<20); err != nil {
		t.Fatal(err)
	}
	get(true)
	if n := b.Asked("release/v1.37.2" + bin + "kubelet.exe"); n != 1 {
		t.Errorf("kubelet.exe was downloaded %d times", n)
	}
	// The folder is one that --k8s takes, and nothing of the user's is overwritten.
	if ref := resolveDir(t, dir, Options{}); ref.Version != "v1.37.2" {
		t.Errorf("got %+v", ref)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Get(t.Context(), src, ref, opts, dir, report.Discard); fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "mine.txt") {
		t.Errorf("got %v", err)
	}
}

func TestVerifyReproducible(t *testing.T) {
	first := Bits{Binaries: []Binary{{File: "kubelet.exe", SHA256: "a"}, {File: "kubeadm.exe", SHA256: "b"}}}
	second := Bits{Binaries: []Binary{{File: "kubelet.exe", SHA256: "a"}, {File: "kubeadm.exe", SHA256: "c"}}}
	if err := compareBits("x", first, first); err != nil {
		t.Error(err)
	}
	if err := compareBits("x", first, second); fault.ClassOf(err) != fault.Failed || !strings.Contains(err.Error(), "kubeadm.exe was b and is c") || strings.Contains(err.Error(), "kubelet") {
		t.Errorf("got %v", err)
	}
	if err := compareBits("x", first, Bits{Binaries: second.Binaries[:1]}); err == nil {
		t.Error("a program that is missing is not noticed")
	}
	if err := VerifyReproducible(t.Context(), "x", Ref{}, first, Options{Debug: true}, report.Discard); fault.ClassOf(err) != fault.Usage {
		t.Errorf("with symbols: got %v", err)
	}
	if testing.Short() {
		t.Skip("compiles the standard library")
	}
	dir, _ := gitRepo(t)
	appendTo(t, filepath.Join(dir, "CHANGES"), "mine\n")
	for _, text := range []string{"git:" + dir + "@master", dir} {
		opts := Options{CacheDir: t.TempDir()}
		src, ref, err := resolveText(t, text, opts, report.Discard)
		if err != nil {
			t.Fatal(err)
		}
		bits, _, err := Get(t.Context(), src, ref, opts, filepath.Join(t.TempDir(), "bin"), report.Discard)
		if err == nil {
			err = VerifyReproducible(t.Context(), text, ref, bits, opts, report.Discard)
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if left, err := filepath.Glob(filepath.Join(opts.CacheDir, "again-*")); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", text, left, err)
		}
	}
}

package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

// mustDir parses a folder.
func mustDir(t *testing.T, dir string, opts Options) Source {
	t.Helper()
	src, err := Parse(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestDir(t *testing.T) {
	dir := kubetest.Fixture(t, t.TempDir(), "v1.37.2")
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte("v1.37.2\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	src, rec := mustDir(t, dir, Options{}), &recorder{}
	ref, err := src.Resolve(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	if ref.Source != "dir" || ref.Version != "v1.37.2" || ref.Base != nil || len(ref.Inputs) != 4 || len(rec.events) != 0 {
		t.Errorf("got %+v and %v", ref, rec.events)
	}
	out := t.TempDir()
	bits, err := src.Fetch(t.Context(), ref, out, t.TempDir(), rec)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bits.Binaries {
		if b.Name != Programs()[i] || ref.Inputs[b.File] != "sha256:"+b.SHA256 {
			t.Errorf("got %+v for %v", b, ref.Inputs)
		}
		if _, err := Verify(filepath.Join(out, b.File), Expect{Name: b.Name}); err != nil {
			t.Error(err)
		}
	}

	// The same version with other bytes is another ref; the old one is refused.
	if err := kubetest.BuildFixture(t.Context(), dir, "v1.37.2", "patched"); err != nil {
		t.Fatal(err)
	}
	changed, err := src.Resolve(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	for name, digest := range ref.Inputs {
		if changed.Inputs[name] == digest {
			t.Errorf("%s has other bytes and the same digest", name)
		}
	}
	if _, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), rec); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a changed folder: got %v", err)
	}
}

func TestDirVersion(t *testing.T) {
	dir := kubetest.Fixture(t, t.TempDir(), "v1.37.2")
	tests := map[string]struct {
		opt, file string
		want      string
		warn      bool
		says      string
	}{
		"option":                 {opt: "1.37.2", want: "v1.37.2"},
		"option before file":     {opt: "v1.37.2", file: "v1.36.3", want: "v1.37.2"},
		"file":                   {file: "1.37.2\n", want: "v1.37.2"},
		"contradicted":           {opt: "v1.36.0-5+0123abcd", want: "v1.36.0-5+0123abcd", warn: true},
		"wrong option":           {opt: "newest", says: "--k8s-version newest"},
		"wrong file":             {file: "<html>", says: "holds no version"},
		"neither, nor a program": {says: "--k8s-version v1.37.2"},
	}
	t.Setenv("PATH", "") // no wine; one outside of PATH is not asked without a cache folder
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "version")
			os.Remove(file)
			if tt.file != "" {
				if err := os.WriteFile(file, []byte(tt.file), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			rec := &recorder{}
			ref, err := mustDir(t, dir, Options{Version: tt.opt}).Resolve(t.Context(), rec)
			if tt.says != "" {
				if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want it to say %q", err, tt.says)
				}
				return
			}
			if err != nil || ref.Version != tt.want {
				t.Fatalf("got %q, %v", ref.Version, err)
			}
			if warned := len(rec.messages(report.Warning)) > 0; warned != tt.warn {
				t.Errorf("events: %v", rec.events)
			}
		})
	}
}

func TestDirRefuses(t *testing.T) {
	full := kubetest.Fixture(t, t.TempDir(), "v1.37.2")
	copyTo := func(dir string, programs ...string) {
		for _, p := range programs {
			if err := gosource.CopyFile(filepath.Join(full, p+".exe"), filepath.Join(dir, p+".exe")); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		make func(dir string)
		base string
		says []string
	}{
		"empty":         {func(string) {}, "", []string{"lacks kube-log-runner.exe, kube-proxy.exe, kubeadm.exe, kubelet.exe", "--k8s-base v1.37.2"}},
		"no kubelet":    {func(d string) { copyTo(d, KubeProxy) }, "v1.37.2", []string{"lacks kube-log-runner.exe, kubeadm.exe, kubelet.exe", "kubelet.exe must be in the folder"}},
		"kubelet alone": {func(d string) { copyTo(d, Kubelet) }, "", []string{"lacks kube-log-runner.exe, kube-proxy.exe, kubeadm.exe;", "--k8s-base v1.37.2"}},
		"wrong base":    {func(d string) { copyTo(d, Kubelet) }, "newest", []string{"--k8s-base newest"}},
		"all at once": {func(d string) {
			write(d, "kubelet.exe", "MZ")
			write(d, "kubeadm.exe", "<html>")
		}, "", []string{"kubelet.exe: is refused: its 2 bytes", "kubeadm.exe: is refused: it is an HTML page", "lacks kube-log-runner.exe, kube-proxy.exe;"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tt.make(dir)
			_, err := mustDir(t, dir, Options{Version: "v1.37.2", Base: tt.base}).Resolve(t.Context(), report.Discard)
			if fault.ClassOf(err) != fault.Input {
				t.Fatalf("got %v", err)
			}
			for _, part := range tt.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want it to say %q", err, part)
				}
			}
			if name == "all at once" && len(fault.All(err)) != 3 {
				t.Errorf("got %d problems, want all 3", len(fault.All(err)))
			}
		})
	}
}

func TestDirWithBase(t *testing.T) {
	proxy := proxySource(t, "v1.37.2", kubetest.Release{Version: "v1.37.2", Commit: fixtureCommit, Time: fixtureDate, GoVersion: hostGo(t)})
	dir := kubetest.FixtureOf(t, t.TempDir(), kubetest.Spec{Version: "v1.38.0-alpha.1", Programs: []string{Kubelet, KubeProxy}})
	src := mustDir(t, dir, Options{Version: "v1.38.0-alpha.1", Base: "1.37.2", Env: proxy.opts.Env})
	rec := &recorder{}
	ref, err := src.Resolve(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	if ref.Version != "v1.38.0-alpha.1" || ref.Commit != "" || ref.Base == nil || ref.Base.Commit != fixtureCommit || len(ref.Inputs) != 2 {
		t.Errorf("got %+v, base %+v", ref, ref.Base)
	}
	if n := strings.Join(rec.messages(report.Note), "\n"); !strings.Contains(n, "kube-log-runner.exe, kubeadm.exe") {
		t.Errorf("noted %q", n)
	}
	bits, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), rec)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bits.Binaries {
		compiled := strings.HasPrefix(b.From, "compiled from ")
		if b.Name != Programs()[i] || compiled != (b.Name == Kubeadm || b.Name == KubeLogRunner) {
			t.Errorf("got %+v", b)
		}
	}
	if len(bits.Binaries) != 4 {
		t.Errorf("got %d programs", len(bits.Binaries))
	}
}

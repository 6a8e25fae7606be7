package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/archive"
	"github.com/wbox-dev/wbox/images/hostprocess"
)

func created() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// folders makes a folder with all programs for each processor.
func folders(t *testing.T) map[string]string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	src := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(dir, "kube-log-runner"), src)
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		data, err := os.ReadFile(filepath.Join(dir, "kube-log-runner"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
		out[arch] = dir
	}
	return out
}

func names(r *Result) []string {
	var out []string
	for _, i := range r.Images {
		out = append(out, i.Name+" "+strings.Join(i.Platforms, ","))
	}
	return out
}

// A request for everything: the names, the platforms, and that all of it can be
// saved.
func TestBuild(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "kube-proxy.exe")
	if err := os.WriteFile(exe, []byte("MZ"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Request{Version: "v1.38.0-alpha.1.5+0123abcd", Created: created(), Dir: t.TempDir(), KubeProxy: exe,
		Linux:  &Linux{Folders: folders(t), Repository: "example.com/k8s"},
		Plugin: &Plugin{Name: "antrea", Version: "v2.7.0", Files: hostprocess.Files{"antrea-agent.exe": exe, "antctl.exe": exe, "antrea-cni.exe": exe}}}
	got, err := Build(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"example.com/k8s/kube-apiserver:v1.38.0-alpha.1.5_0123abcd linux/amd64,linux/arm64",
		"example.com/k8s/kube-controller-manager:v1.38.0-alpha.1.5_0123abcd linux/amd64,linux/arm64",
		"example.com/k8s/kube-scheduler:v1.38.0-alpha.1.5_0123abcd linux/amd64,linux/arm64",
		"docker.io/sigwindowstools/kube-proxy:v1.38.0-alpha.1.5_0123abcd-calico-hostprocess windows/amd64",
		"docker.io/antrea/antrea-windows:v2.7.0 windows/amd64",
	}
	if !slices.Equal(names(got), want) {
		t.Errorf("got\n%s", strings.Join(names(got), "\n"))
	}
	if len(got.Skipped) != 1 || !strings.Contains(got.Skipped[0], "iptables") {
		t.Errorf("skipped %q", got.Skipped)
	}
	for _, i := range got.Images {
		saved, err := archive.Save(t.Context(), filepath.Join(t.TempDir(), "x.tar"), []archive.Entry{{Names: []string{i.Name}, Source: i.Source}}, archive.Options{})
		if err != nil || saved[0].Digest != i.Digest {
			t.Errorf("%s: saved %+v, said %s, %v", i.Name, saved, i.Digest, err)
		}
		if i.Patch != "" && !strings.Contains(string(got.Patches[i.Patch]), i.Name) {
			t.Errorf("%s is not in %s", i.Name, got.Patches[i.Patch])
		}
	}

	// With a base, such as one of ours, there is kube-proxy too; and Windows
	// images go onto another base.
	r.Linux.ProxyBase, r.Plugin = got.Images[0].Source, nil
	r.Base = got.Images[4].Source
	more, err := Build(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(more.Images) != 5 || more.Skipped != nil || more.Images[1].Digest != got.Images[1].Digest || more.Images[4].Digest == got.Images[3].Digest {
		t.Errorf("got\n%s\nskipped %q", strings.Join(names(more), "\n"), more.Skipped)
	}
	for _, i := range more.Images {
		if _, err := archive.Save(t.Context(), filepath.Join(t.TempDir(), "x.tar"), []archive.Entry{{Names: []string{i.Name}, Source: i.Source}}, archive.Options{}); err != nil {
			t.Error(err)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "x.exe")
	if err := os.WriteFile(exe, []byte("MZ"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := func(r Request) Request { r.Version, r.Dir = "v1.37.2", t.TempDir(); return r }
	windows, err := Build(t.Context(), opts(Request{KubeProxy: exe}))
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		r     Request
		class fault.Class
		want  string
	}{
		"no programs":     {Request{Linux: &Linux{Folders: map[string]string{"amd64": t.TempDir()}}}, fault.Input, "kube-apiserver"},
		"no kube-proxy":   {Request{KubeProxy: "/none"}, fault.Input, "/none"},
		"unknown plugin":  {Request{Plugin: &Plugin{Name: "flannel"}}, fault.Usage, "antrea or calico"},
		"base of windows": {Request{Linux: &Linux{Folders: folders(t), ProxyBase: windows.Images[0].Source}}, fault.Input, "is not for linux/"},
	} {
		if _, err := Build(t.Context(), opts(c.r)); fault.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := images.Load(t.Context(), windows.Images[0].Source, images.Platform{OS: "linux", Architecture: "amd64"}); err != nil {
		t.Errorf("an image without an index is taken as it is: %v", err)
	}
}

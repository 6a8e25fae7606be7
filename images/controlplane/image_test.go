package controlplane

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/layer"
)

func created() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// program compiles a small one.
func program(t *testing.T, arch string, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	src := filepath.Join(dir, "main.go")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "program")
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-trimpath", "-o", out}, append(flags, src)...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func TestBuild(t *testing.T) {
	path := program(t, "amd64")
	opts := layer.Options{Created: created(), Dir: t.TempDir()}
	img, err := Build(t.Context(), Program{Name: "kube-apiserver", Path: path, Runner: path, Arch: "amd64", Version: "v1.37.2", Revision: "abc"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if !slices.Equal(c.Entrypoint, []string{"/go-runner"}) || c.User != "0" || !strings.Contains(c.Env[0], "/usr/local/bin") || !config.Created.Equal(created()) ||
		c.Labels["org.opencontainers.image.version"] != "v1.37.2" || c.Labels["org.opencontainers.image.revision"] != "abc" {
		t.Errorf("configuration %+v", config)
	}
}

// The official base of kube-proxy has programs of others, an empty one has none.
func TestKubeProxyWantsABase(t *testing.T) {
	path := program(t, "arm64")
	opts := layer.Options{Created: created(), Dir: t.TempDir()}
	p := Program{Name: "kube-proxy", Path: path, Runner: path, Arch: "arm64", Version: "v1.37.2"}
	if _, err := Build(t.Context(), p, opts); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "iptables") {
		t.Errorf("without a base: %v", err)
	}
	base, err := Build(t.Context(), Program{Name: "kube-scheduler", Path: path, Runner: path, Arch: "arm64"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	p.Base = base
	img, err := Build(t.Context(), p, opts)
	if err != nil {
		t.Fatal(err)
	}
	if layers, err := img.Layers(); err != nil || len(layers) != 2 {
		t.Errorf("%d layers, %v", len(layers), err)
	}
	config, _ := base.ConfigFile()
	config = config.DeepCopy()
	config.Architecture = "amd64"
	if p.Base, err = mutate.ConfigFile(base, config); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), p, opts); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "not for linux/arm64") {
		t.Errorf("base of another platform: %v", err)
	}
}

func TestProgramsAreRefused(t *testing.T) {
	static, other := program(t, "amd64"), program(t, "arm64")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{other: "is for EM_AARCH64", text: "is no Linux program", filepath.Join(t.TempDir(), "none"): "no such file"}
	if f, err := elf.Open("/bin/true"); err == nil && f.Machine == elf.EM_X86_64 { // of the system, so linked to its libraries
		cases["/bin/true"] = "is not static"
	}
	for path, want := range cases {
		_, err := Build(t.Context(), Program{Name: "kube-scheduler", Path: path, Runner: static, Arch: "amd64"}, layer.Options{Dir: t.TempDir()})
		if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestIndex(t *testing.T) {
	opts := layer.Options{Created: created(), Dir: t.TempDir()}
	var all []v1.Image
	for _, arch := range []string{"amd64", "arm64"} {
		path := program(t, arch)
		img, err := Build(t.Context(), Program{Name: "kube-scheduler", Path: path, Runner: path, Arch: arch, Version: "v1.37.2"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, img)
	}
	index, err := Index(all...)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	raw, err := index.RawManifest()
	if err != nil || strings.Contains(string(raw), "artifactType") || !strings.Contains(string(raw), `{"architecture":"arm64","os":"linux"}`) {
		t.Errorf("%s, %v", raw, err)
	}
}

package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
)

func TestLdflags(t *testing.T) {
	ref := Ref{Version: "v1.37.2", Commit: "abc", BuildDate: "2026-10-27T12:01:04Z", TreeState: "clean"}
	got := ldflags(ref)
	for _, pkg := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
		for _, v := range []string{"gitVersion=v1.37.2", "gitCommit=abc", "gitTreeState=clean", "gitMajor=1", "gitMinor=37", "buildDate=2026-10-27T12:01:04Z"} {
			if want := "-X '" + pkg + "." + v + "'"; !strings.Contains(got, want) {
				t.Errorf("%s lacks %s", got, want)
			}
		}
	}
	if !strings.HasPrefix(got, "all=") || !strings.HasSuffix(got, "buildDate=2026-10-27T12:01:04Z'") {
		t.Errorf("got %s", got)
	}
	pre := ldflags(Ref{Version: "v1.38.0-beta.0", TreeState: "clean"})
	if !strings.Contains(pre, "gitMinor=38+'") || !strings.Contains(pre, "gitCommit='") || strings.Contains(pre, "buildDate") {
		t.Errorf("a pre-release without commit and date: %s", pre)
	}
}

// Everything that decides bytes must change the digest of the flags.
func TestBuildInputTellsRefsApart(t *testing.T) {
	base := Ref{Version: "v1.37.2", Commit: "abc", BuildDate: "2026-10-27T12:01:04Z", TreeState: "clean"}
	seen, goos, goarch := map[string]string{}, windows, "amd64"
	for name, change := range map[string]func(*Ref) string{
		"nothing": func(*Ref) string { return "a,b" },
		"tags":    func(*Ref) string { return "a" },
		"version": func(r *Ref) string { r.Version = "v1.37.3"; return "a,b" },
		"commit":  func(r *Ref) string { r.Commit = ""; return "a,b" },
		"date":    func(r *Ref) string { r.BuildDate = ""; return "a,b" },
		"state":   func(r *Ref) string { r.TreeState = "dirty"; return "a,b" },
		"debug":   func(*Ref) string { return "a,b" },
		"linux":   func(*Ref) string { goos = linux; return "a,b" },
		"arm":     func(*Ref) string { goos, goarch = linux, "arm64"; return "a,b" },
	} {
		ref := base
		goos, goarch = windows, "amd64"
		tags := change(&ref)
		key := buildInput(buildFlags(ref, tags, name == "debug"), goos, goarch)
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[key] = name
	}
}

func TestPinnedSums(t *testing.T) {
	ref := Ref{Inputs: map[string]string{"k8s.io/kubernetes@v1.37.2": "h1:b=", "k8s.io/api@v0.37.2": "h1:a=", buildInputName: "sha256:00"}}
	if got, want := pinnedSums(ref), "k8s.io/api v0.37.2 h1:a=\nk8s.io/kubernetes v1.37.2 h1:b=\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExpect(t *testing.T) {
	inputs := map[string]string{"k8s.io/kubernetes@v1.37.2": "h1:k", "k8s.io/component-base@v0.37.2": "h1:c"}
	ref := Ref{Version: "v1.37.2", BuildDate: "DATE", Toolchain: "go1.26.10", Inputs: inputs}
	e := expectModule(ref, program(Kubelet)) // must be stamped, whatever go list says
	if e.MainVersion != "v1.37.2" || e.MainSum != "h1:k" || !slices.Equal(e.Stamps, []string{"DATE"}) || e.Standalone != "" {
		t.Errorf("kubelet: %+v", e)
	}
	if e.IfIn != nil {
		t.Error("kubelet may do without a version")
	}
	if e := expectModule(ref, program(KubeLogRunner)); e.MainVersion != "v0.37.2" || e.MainSum != "h1:c" || e.Stamps == nil || e.IfIn == nil {
		t.Errorf("kube-log-runner: %+v", e)
	}
	ref.BuildDate = ""
	if e := expectModule(ref, program(Kubelet)); e.Stamps != nil || e.Standalone != "v1.37.2" {
		t.Errorf("kubelet of which nothing is known: %+v", e)
	}
}

// program is a Windows program as it is compiled.
func program(name string) gosource.Program {
	return programsOf([]target{{program: name, goos: windows}})[0]
}

package gosource

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

func TestBuildEnvIsFixed(t *testing.T) {
	g := &GoTool{User: map[string]string{"GOFLAGS": "-race -modcacherw", "GOPROXY": "https://proxy.example", "GOEXPERIMENT": "x", "GOCACHE": "/cache"},
		extra: []string{"GOAMD64=v3"}}
	env := map[string]string{}
	for _, kv := range g.BuildEnv([]string{"PATH=/bin", "GOFLAGS=-race", "GOEXPERIMENT=x", "CGO_ENABLED=1", "GOROOT=/old", "GODEBUG=y", "GOMAXPROCS=1", "GOOS=linux"}, "go1.26.10") {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value // the last one counts
	}
	want := map[string]string{
		"PATH": "/bin", "GOMAXPROCS": "1", "GOPROXY": "https://proxy.example", "GOCACHE": "/cache",
		"GOENV": "off", "GOWORK": "off", "GO111MODULE": "on", "GOFLAGS": "-mod=mod -modcacherw", "GOTOOLCHAIN": "go1.26.10",
		"GOOS": "windows", "GOARCH": "amd64", "GOAMD64": "v1", "CGO_ENABLED": "0",
	}
	if !maps.Equal(env, want) {
		t.Errorf("got %v, want %v", env, want)
	}
}

// The system's folder for temporary files may have room for little.
func TestGoWorksBesideTheResults(t *testing.T) {
	scratch := t.TempDir()
	b := &Build{Out: filepath.Join(scratch, "out"), Go: &GoTool{}}
	if got := b.tempEnv(); len(got) != 1 || got[0] != "GOTMPDIR="+scratch {
		t.Errorf("got %q", got)
	}
	b.Go.User = map[string]string{"GOTMPDIR": "/large"} // it is in Env already
	if got := b.tempEnv(); got != nil {
		t.Errorf("the user's own folder is replaced: %q", got)
	}
}

func TestGoMissingOrTooOld(t *testing.T) {
	if _, err := NewGoTool(t.Context(), Settings{Go: "no-such-go"}); fault.ClassOf(err) != fault.Host || !strings.Contains(err.Error(), "go.dev/dl") {
		t.Errorf("missing: got %v", err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("the rest needs a shell script for a go command")
	}
	for says, script := range map[string]string{
		"go1.20.1, which is too old": `echo '{"GOVERSION":"go1.20.1"}'`,
		"does not work":              `echo broken >&2; exit 1`,
	} {
		path := filepath.Join(t.TempDir(), "go")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := NewGoTool(t.Context(), Settings{Go: path}); fault.ClassOf(err) != fault.Host || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", script, err)
		}
	}
}

func TestTooOldAGo(t *testing.T) {
	g := &GoTool{path: "go", Version: "go1.22.0", set: Settings{What: "x"}}
	_, err := g.Toolchain(t.Context(), "", "", "go1.26.0", report.Discard)
	if fault.ClassOf(err) != fault.Host || !strings.Contains(err.Error(), "install go1.26.0") {
		t.Errorf("got %v", err)
	}
}

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// oldestGo is the oldest go command that can be told to use another toolchain.
const oldestGo = "go1.21"

// goTool is the user's go command.
type goTool struct {
	path    string
	version string            // of the command itself, such as "go1.26.8"
	user    map[string]string // the user's settings, as `go env` prints them
	extra   []string          // Options.Env
}

// newGoTool finds the go command and asks for its version and settings. A
// missing or too old one is a *fault.Problem of class fault.Host.
func newGoTool(ctx context.Context, opts Options) (*goTool, error) {
	name := opts.Go
	if name == "" {
		name = "go"
	}
	const fix = "install Go 1.26 or newer (https://go.dev/dl), or give a folder with the binaries"
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, &fault.Problem{Class: fault.Host, Field: "go", Why: "is needed to compile Kubernetes and is not in PATH", Fix: fix}
	}
	g := &goTool{path: path, extra: opts.Env}
	if opts.Offline {
		g.extra = append(slices.Clone(g.extra), "GOPROXY=off")
	}
	out, err := g.run(ctx, "", []string{"GOTOOLCHAIN=local", "GOWORK=off"}, nil, "env", "-json")
	if err == nil {
		err = json.Unmarshal(out, &g.user)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &fault.Problem{Class: fault.Host, Field: "go", Value: path, Why: "does not work", Fix: fix, Err: err}
	}
	g.version, _, _ = strings.Cut(g.user["GOVERSION"], " ")
	if version.IsValid(g.version) && version.Compare(g.version, oldestGo) < 0 {
		return nil, &fault.Problem{Class: fault.Host, Field: "go", Value: path, Why: "is " + g.version + ", which is too old", Fix: fix}
	}
	return g, nil
}

// run calls the go command in dir with the user's own settings, changed by
// env, and returns its standard output.
func (g *goTool) run(ctx context.Context, dir string, env []string, line func(string), args ...string) ([]byte, error) {
	full := append(append(os.Environ(), g.extra...), env...)
	return command{argv: append([]string{g.path}, args...), dir: dir, env: full, line: line}.run(ctx)
}

// module is what `go mod download -json` says of one module.
type module struct {
	Path, Version, Error string
	Info, GoMod, Dir     string // paths in the module cache
	Sum                  string // "h1:…" of the zip
}

// download gets modules ("path@version") into the module cache, checked
// against the user's checksum database. A module that can't be had carries its
// Error; err says that the go command told nothing of them.
func (g *goTool) download(ctx context.Context, dir, toolchain string, modules ...string) ([]module, error) {
	env := []string{"GOWORK=off", "GOTOOLCHAIN=" + toolchain}
	out, err := g.run(ctx, dir, env, nil, append([]string{"mod", "download", "-json"}, modules...)...)
	var got []module
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var m module
		if err := dec.Decode(&m); err != nil {
			return nil, fmt.Errorf("reading what go mod download printed: %w", err)
		}
		got = append(got, m)
	}
	if err != nil && (ctx.Err() != nil || len(got) != len(modules)) {
		return nil, err
	}
	return got, nil
}

// versions returns what the module proxy has of a module.
func (g *goTool) versions(ctx context.Context, dir, path string) ([]string, error) {
	out, err := g.run(ctx, dir, []string{"GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod"}, nil, "list", "-m", "-versions", path)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(out))
	if len(fields) < 2 {
		return nil, errors.New("the module proxy lists none")
	}
	return fields[1:], nil
}

// keptSettings are the user's settings that may decide where modules come from
// and how fast a build is, but not which bytes come out.
func keptSettings() []string {
	return []string{
		"GOAUTH", "GOCACHE", "GOCACHEPROG", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB",
		"GOPATH", "GOPRIVATE", "GOPROXY", "GOSUMDB", "GOTMPDIR", "GOVCS",
	}
}

// buildEnv is the environment of a build: everything of the go command that
// decides bytes is set here or left at its default, so that a GOFLAGS or
// GOEXPERIMENT in the user's shell or go/env file changes nothing.
func (g *goTool) buildEnv(environ []string, toolchain string) []string {
	var env []string
	for _, kv := range append(environ, g.extra...) {
		key, _, _ := strings.Cut(kv, "=")
		switch key {
		case "GOMAXPROCS", "GOMEMLIMIT", "GOGC": // how fast, not what
		default:
			if strings.HasPrefix(key, "GO") || strings.HasPrefix(key, "CGO_") {
				continue
			}
		}
		env = append(env, kv)
	}
	for _, key := range keptSettings() {
		if v := g.user[key]; v != "" {
			env = append(env, key+"="+v)
		}
	}
	goflags := "-mod=mod" // go.sum lacks the lines of the staging modules' dependencies
	if strings.Contains(" "+g.user["GOFLAGS"]+" ", " -modcacherw ") {
		goflags += " -modcacherw"
	}
	return append(env, "GOENV=off", "GOWORK=off", "GO111MODULE=on", "GOFLAGS="+goflags, "GOTOOLCHAIN="+toolchain,
		"GOOS=windows", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0")
}

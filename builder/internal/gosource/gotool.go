package gosource

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

// GoTool is the user's go command.
type GoTool struct {
	path    string
	Version string            // of the command itself, such as "go1.26.8"
	User    map[string]string // the user's settings, as `go env` prints them
	extra   []string          // Settings.Env
	set     Settings
}

// NewGoTool finds the go command and asks for its version and settings. A
// missing or too old one is a *fault.Problem of class fault.Host.
func NewGoTool(ctx context.Context, set Settings) (*GoTool, error) {
	name := set.Go
	if name == "" {
		name = "go"
	}
	const fix = "install Go 1.26 or newer (https://go.dev/dl), or give a folder with the binaries"
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, &fault.Problem{Class: fault.Host, Field: "go", Why: "is needed to compile " + set.What + " and is not in PATH", Fix: fix}
	}
	g := &GoTool{path: path, extra: set.Env, set: set}
	if set.Offline {
		g.extra = append(slices.Clone(g.extra), "GOPROXY=off")
	}
	out, err := g.Run(ctx, "", []string{"GOTOOLCHAIN=local", "GOWORK=off"}, nil, "env", "-json")
	if err == nil {
		err = json.Unmarshal(out, &g.User)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &fault.Problem{Class: fault.Host, Field: "go", Value: path, Why: "does not work", Fix: fix, Err: err}
	}
	g.Version, _, _ = strings.Cut(g.User["GOVERSION"], " ")
	if version.IsValid(g.Version) && version.Compare(g.Version, oldestGo) < 0 {
		return nil, &fault.Problem{Class: fault.Host, Field: "go", Value: path, Why: "is " + g.Version + ", which is too old", Fix: fix}
	}
	return g, nil
}

// Run calls the go command in dir with the user's own settings, changed by
// env, and returns its standard output.
func (g *GoTool) Run(ctx context.Context, dir string, env []string, line func(string), args ...string) ([]byte, error) {
	full := append(append(os.Environ(), g.extra...), env...)
	return Command{Argv: append([]string{g.path}, args...), Dir: dir, Env: full, Line: line}.Run(ctx)
}

// Module is what `go mod download -json` says of one module.
type Module struct {
	Path, Version, Error string
	Info, GoMod, Dir     string // paths in the module cache
	Sum                  string // "h1:…" of the zip
}

// Download gets modules ("path@version") into the module cache, checked
// against the user's checksum database. A module that can't be had carries its
// Error; err says that the go command told nothing of them.
func (g *GoTool) Download(ctx context.Context, dir, toolchain string, modules ...string) ([]Module, error) {
	env := []string{"GOWORK=off", "GOTOOLCHAIN=" + toolchain}
	out, err := g.Run(ctx, dir, env, nil, append([]string{"mod", "download", "-json"}, modules...)...)
	var got []Module
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var m Module
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

// Versions returns what the module proxy has of a module.
func (g *GoTool) Versions(ctx context.Context, dir, path string) ([]string, error) {
	out, err := g.Run(ctx, dir, []string{"GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod"}, nil, "list", "-m", "-versions", path)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(out))
	if len(fields) < 2 {
		return nil, errors.New("the module proxy lists none")
	}
	return fields[1:], nil
}

// Offline says whether nothing can be downloaded, by --offline or by the user's
// own GOPROXY.
func (g *GoTool) Offline() bool { return g.set.Offline || g.User["GOPROXY"] == "off" }

// keptSettings are the user's settings that may decide where modules come from
// and how fast a build is, but not which bytes come out.
func keptSettings() []string {
	return []string{
		"GOAUTH", "GOCACHE", "GOCACHEPROG", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB",
		"GOPATH", "GOPRIVATE", "GOPROXY", "GOSUMDB", "GOTMPDIR", "GOVCS",
	}
}

// BuildEnv is the environment of a build: everything of the go command that
// decides bytes is set here or left at its default, so that a GOFLAGS or
// GOEXPERIMENT in the user's shell or go/env file changes nothing.
func (g *GoTool) BuildEnv(environ []string, toolchain string) []string {
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
		if v := g.User[key]; v != "" {
			env = append(env, key+"="+v)
		}
	}
	goflags := "-mod=mod" // go.sum lacks the lines of the staging modules' dependencies
	if strings.Contains(" "+g.User["GOFLAGS"]+" ", " -modcacherw ") {
		goflags += " -modcacherw"
	}
	return append(env, "GOENV=off", "GOWORK=off", "GO111MODULE=on", "GOFLAGS="+goflags, "GOTOOLCHAIN="+toolchain,
		"GOOS=windows", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wbox-dev/wbox/builder/component/componenttest"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/cmd/wbox/internal/cli"
)

func TestMain(m *testing.M) {
	asQEMU()
	testscript.Main(m, map[string]func(){
		"wbox": func() { os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScript runs the command line's contract: each .txtar is a session. No
// script boots a machine: a build that gets past its checks is stopped by a
// machine without QEMU (an empty PATH).
func TestScript(t *testing.T) {
	goFolders := []string{"GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE"), "GOPROXY=off", "GOFLAGS=-mod=mod"}
	testscript.Run(t, testscript.Params{
		Files: scripts(t, "testdata/script"),
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, goFolders...)
			// The folder of the programs under test alone, for a machine that has no others.
			e.Vars = append(e.Vars, "BIN="+filepath.SplitList(e.Getenv("PATH"))[0])
			e.Vars = append(e.Vars, "WBOX_STORE="+e.WorkDir+"/.store", "WBOX_WINE=none", "XDG_CACHE_HOME="+e.WorkDir+"/.xdg-cache")
			e.Values[registriesKey] = registries{}
			// No login of whoever runs the tests is ever used.
			e.Vars = append(e.Vars, "DOCKER_CONFIG="+e.WorkDir+"/.docker", "HOME="+e.WorkDir)
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"fakeiso": fakeISO, "installed": installed,
			"exes":    exes,
			"program": program,
			"proxy":   proxy,
			"cut":     cut,
			"bucket":  bucket, "gitrepo": gitrepo, "resolves": resolves, "differonly": differonly,
			"replace": replace, "tmpfs": tmpfs,
			"pluginrepo": pluginRepo, "members": members,
			"registry": startRegistry, "publish": publishImages, "requests": requests, "cibucket": cibucket,
			"projectrepo": projectRepo, "projectexes": projectExes,
		},
	})
}

// scripts lists a folder's sessions. Without a go command those are left out
// that compile a fixture.
func scripts(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("%d sessions in %s: %v", len(all), dir, err)
	}
	if _, err := exec.LookPath("go"); err == nil {
		return all
	}
	compiles := regexp.MustCompile(`(?m)^(exes|program|proxy|bucket|gitrepo|projectrepo|projectexes|go) `)
	return slices.DeleteFunc(all, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		left := compiles.Match(text)
		if left {
			t.Logf("%s is left out: it needs the go command", file)
		}
		return left
	})
}

// goEnv asks the go command for one of its settings; without one there is none.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// exits CODE PROGRAM ARGS…: runs the program and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("running %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// fakeISO FILE 2022|2025 [standin|standin-without-powershell|core-only|client].
func fakeISO(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: fakeiso FILE RELEASE [KIND]")
	}
	editions := isotest.Editions(args[1])
	var standIn *iso.StandIn
	kind := ""
	if len(args) > 2 {
		kind = args[2]
	}
	switch kind {
	case "standin":
		standIn = &iso.StandIn{StandIn: true, Version: "1", PowerShell: "7.6.9"}
	case "standin-without-powershell":
		standIn = &iso.StandIn{StandIn: true, Version: "1"}
	case "core-only":
		var core []iso.Edition
		for _, e := range editions {
			if e.InstallationType == "Server Core" {
				core = append(core, e)
			}
		}
		editions = core
	case "client": // Windows 11, which shares its build with Server 2025
		editions = []iso.Edition{{Index: 1, Name: "Windows 11 Pro", DisplayName: "Windows 11 Pro", EditionID: "Professional", InstallationType: "Client",
			Build: editions[0].Build, SPBuild: 1, Arch: "amd64", Languages: []string{"en-US"}, Bytes: 3}}
	}
	ts.Check(isotest.WriteFake(ts.MkAbs(args[0]), editions, standIn))
}

// program DIR NAME GOOS GOARCH: one program of Kubernetes' shape for some system.
func program(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: program DIR NAME GOOS GOARCH")
	}
	built := ts.MkAbs(args[0] + "-built")
	spec := kubetest.Spec{Version: "v1.37.2", Programs: []string{args[1]}, GOOS: args[2], GOARCH: args[3]}
	ts.Check(kubetest.Build(context.Background(), built, spec))
	files, err := filepath.Glob(filepath.Join(built, args[1]+"*"))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("built %v", files)
	}
	ts.Check(os.MkdirAll(ts.MkAbs(args[0]), 0o755))
	ts.Check(os.Rename(files[0], filepath.Join(ts.MkAbs(args[0]), args[1]+".exe")))
}

// proxy VERSION…: from here on, a module proxy has these releases of Kubernetes
// and nothing else.
func proxy(ts *testscript.TestScript, _ bool, args []string) {
	var releases []kubetest.Release
	for _, v := range args {
		releases = append(releases, kubetest.Release{Version: v, GoVersion: strings.TrimPrefix(runtime.Version(), "go"),
			Commit: "0123456789abcdef0123456789abcdef01234567", Time: "2026-08-01T12:00:00Z"})
	}
	env, err := kubetest.Proxy(ts.MkAbs("proxy"), releases...)
	ts.Check(err)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		ts.Setenv(name, value)
	}
}

// condition knows [root] and [tmpfs]: a small file system can be made here.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "tmpfs":
		return canMount(), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// tmpfs DIR SIZE: makes a folder in which no more than that fits.
func tmpfs(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: tmpfs DIR SIZE")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(mountSmall(dir, args[1]))
	ts.Defer(func() { unmount(dir) })
}

// cut FILE: takes the last third of a file away.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: cut FILE")
	}
	fi, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), fi.Size()*2/3))
}

// replace OLD NEW FILE: edits a file by hand.
func replace(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: replace OLD NEW FILE")
	}
	before := ts.ReadFile(args[2])
	after := strings.ReplaceAll(before, args[0], args[1])
	if after == before {
		ts.Fatalf("%s does not say %q", args[2], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(after), 0o600))
}

// exes DIR VERSION [VARIANT]: the four programs, built in the shape of Kubernetes.
func exes(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exes DIR VERSION [VARIANT]")
	}
	variant := ""
	if len(args) > 2 {
		variant = args[2]
	}
	ts.Check(kubetest.BuildFixture(context.Background(), ts.MkAbs(args[0]), args[1], variant))
}

// projectrepo DIR PROJECT TAG: a git repository of the shape of Antrea, Calico
// or containerd, and a module proxy with containerd and its shim.
func projectRepo(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: projectrepo DIR PROJECT TAG")
	}
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"} {
		ts.Setenv(name, map[string]string{"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"}[name])
	}
	commits, err := componenttest.Repo(context.Background(), ts.MkAbs(args[0]), args[1], args[2])
	ts.Check(err)
	for name, commit := range commits {
		ts.Setenv(strings.ToUpper(name), commit)
	}
	if _, err := os.Stat(ts.MkAbs("project-proxy")); err == nil {
		return
	}
	env, err := componenttest.Proxy(ts.MkAbs("project-proxy"))
	ts.Check(err)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		ts.Setenv(name, value)
	}
}

// projectexes DIR PROJECT PACKAGE…: compiled programs of such a repository.
func projectExes(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: projectexes DIR PROJECT PACKAGE…")
	}
	ts.Check(componenttest.Compile(context.Background(), ts.MkAbs(args[0]), args[1], "v2.7.0", args[2:]...))
}

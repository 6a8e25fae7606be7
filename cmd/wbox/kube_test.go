package main

import (
	"bufio"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wbox-dev/wbox/builder/kube/kubetest"
)

// bucket: from here on, releases and CI builds come from a loopback bucket that
// has v1.37.2 and two builds of v1.38.0-alpha.1, the newer of which lacks kubelet.exe.
func bucket(ts *testscript.TestScript, _ bool, _ []string) {
	const older, newer = "v1.38.0-alpha.1.5+0123456789abcd", "v1.38.0-alpha.1.12+fedcba98765432"
	ctx := context.Background()
	b, err := kubetest.NewBucket(ts.MkAbs(".bucket"))
	ts.Check(err)
	ts.Check(b.Publish(ctx, "release", "v1.37.2", true))
	ts.Check(b.Publish(ctx, "ci", older, false))
	ts.Check(b.Publish(ctx, "ci", newer, false))
	ts.Check(os.Remove(b.Path("ci/" + newer + "/bin/windows/amd64/kubelet.exe")))
	ts.Check(os.Remove(b.Path("ci/" + newer + "/kubernetes-node-windows-amd64.tar.gz")))
	now := time.Now()
	for name, body := range map[string]string{"release/stable.txt": "v1.37.2", "release/stable-1.txt": "v1.37.2", "release/stable-1.37.txt": "v1.37.2",
		"release/latest.txt": "v1.37.2", "ci/latest.txt": newer, "ci/latest-1.txt": newer, "ci/latest-1.38.txt": newer} {
		ts.Check(b.Mark(name, body, now.Add(-3*time.Hour)))
	}
	ts.Check(b.Mark("release/stable-1.36.txt", "<html>log in</html>", now))
	ts.Check(b.Mark("ci/latest-1.37.txt", older, now))
	server := httptest.NewServer(b)
	ts.Defer(server.Close)
	ts.Setenv("WBOX_KUBE_BASE_URL", server.URL)
}

// gitrepo DIR: a repository of Kubernetes' shape, which refs that name no
// repository are looked for in. Its commits are in the environment: MASTER and PULL.
func gitrepo(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: gitrepo DIR")
	}
	dir := ts.MkAbs(args[0])
	commits, err := kubetest.Repo(context.Background(), dir, strings.TrimPrefix(runtime.Version(), "go"))
	ts.Check(err)
	ts.Setenv("WBOX_KUBE_GIT_URL", "file://"+filepath.ToSlash(dir))
	ts.Setenv("MASTER", commits["master"])
	ts.Setenv("SHORT", commits["first"][:9])
	ts.Setenv("PULL", commits["pull/4242"])
	ts.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	ts.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
}

// resolves FILE: each line is "INPUT | EXIT CODE | what is printed must match
// this", and INPUT goes to wbox kube resolve. Variables are filled in.
func resolves(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: resolves FILE")
	}
	variable := regexp.MustCompile(`\$[A-Z_]+`)
	seen, failed := 0, 0
	for s := bufio.NewScanner(strings.NewReader(ts.ReadFile(args[0]))); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cols := strings.Split(line, " | ")
		if len(cols) != 3 {
			ts.Fatalf("not three columns: %s", line)
		}
		for i := range cols {
			cols[i] = variable.ReplaceAllStringFunc(strings.TrimSpace(cols[i]), func(v string) string { return ts.Getenv(v[1:]) })
		}
		seen++
		err := ts.Exec("wbox", append([]string{"kube", "resolve"}, strings.Fields(cols[0])...)...)
		code, out := "0", ts.ReadFile("stdout")+ts.ReadFile("stderr")
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code, err = strconv.Itoa(exit.ExitCode()), nil
		}
		ts.Check(err)
		if code != cols[1] || !regexp.MustCompile(cols[2]).MatchString(out) {
			failed++
			ts.Logf("%s: exit code %s, want %s matching %q:\n%s", cols[0], code, cols[1], cols[2], out)
		}
	}
	ts.Logf("%d inputs", seen)
	if failed > 0 || seen < 60 {
		ts.Fatalf("%d of %d inputs failed", failed, seen)
	}
}

// differonly STAGE FILE FILE: two plans differ in the version and in that stage's
// line, and the stages of machines are the same.
func differonly(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: differonly STAGE FILE FILE")
	}
	stages := func(file string) map[string]string {
		out := map[string]string{}
		for line := range strings.Lines(ts.ReadFile(file)) {
			if f := strings.Fields(line); len(f) > 3 && (f[1] == "miss" || f[1] == "empty" || f[1] == "hit") {
				out[f[0]] = f[2]
			}
		}
		return out
	}
	before, after := stages(args[1]), stages(args[2])
	for _, want := range []string{"windows", "features", "node", "generalize", args[0]} {
		if before[want] == "" {
			ts.Fatalf("%s is not in the plan %v", want, before)
		}
	}
	for name, key := range before {
		if same := after[name] == key; same == (name == args[0]) {
			ts.Fatalf("%s had the key %s and has %s", name, key, after[name])
		}
	}
}

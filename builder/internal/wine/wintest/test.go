package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/exec"
	"github.com/wbox-dev/wbox/builder/internal/wine"
)

// deadline bounds one package's tests; most take a few seconds.
const deadline = "5m"

// pkg is a package with tests: its path as seen from the module's root, and its folder.
type pkg struct{ path, dir string }

// windows is the environment in which the go command builds for Windows.
func windows() []string {
	return append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
}

// packages lists the packages that have tests on Windows.
func packages(ctx context.Context, patterns []string) ([]pkg, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}	{{.Module.Path}}	{{.Dir}}{{end}}`
	out, err := exec.Run(ctx, exec.Command{Program: "go", Args: append([]string{"list", "-f", format}, patterns...), Env: windows()})
	if err != nil {
		return nil, fmt.Errorf("listing the packages: %w", err)
	}
	var pkgs []pkg
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			continue
		}
		pkgs = append(pkgs, pkg{strings.TrimPrefix(strings.TrimPrefix(f[0], f[1]), "/"), f[2]})
	}
	return pkgs, nil
}

// test compiles one package's tests and runs them, then those that are left out
// and may be tried, for the case that they pass by now.
func test(ctx context.Context, prefix *wine.Prefix, work, overlay string, p pkg, out exclusionList) (res result) {
	res.path = p.path
	exe := filepath.Join(work, strings.ReplaceAll(p.path, "/", "_")+".test.exe")
	compile := exec.Command{Program: "go", Args: []string{"test", "-c", "-overlay", overlay, "-o", exe, "."}, Dir: p.dir, Env: windows()}
	if _, err := exec.Run(ctx, compile); err != nil {
		res.err = fmt.Errorf("compiling the tests: %w", err)
		return res
	}
	defer os.Remove(exe)
	began := time.Now()
	res.output, res.err = start(ctx, prefix, exe, p.dir, "-test.skip="+out.pattern())
	if failed := failures(res.output); res.err != nil && ctx.Err() == nil && failed != "" {
		// What a busy machine or wine itself has spoilt passes alone; it is told all the same.
		again, err := start(ctx, prefix, exe, p.dir, "-test.run="+failed)
		if err == nil {
			res.err, res.second = nil, failed
		}
		res.output += again
	}
	res.took = time.Since(began)

	var try exclusionList
	for _, e := range out {
		if !e.skip {
			try = append(try, e)
		}
	}
	if len(try) == 0 || res.err != nil {
		return res
	}
	again, _ := start(ctx, prefix, exe, p.dir, "-test.run="+try.pattern()) // they are meant to fail
	for _, e := range try {
		if regexp.MustCompile(`(?m)^\s*--- PASS: ` + regexp.QuoteMeta(e.test) + ` `).MatchString(again) {
			res.cured = append(res.cured, e.test)
		}
	}
	return res
}

// failures is the pattern of the tests that have failed, without their
// subtests; empty where it was the program as a whole.
func failures(output string) string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^--- FAIL: (\S+) \(`).FindAllStringSubmatch(output, -1) {
		names = append(names, "^"+m[1]+"$")
	}
	return strings.Join(names, "|")
}

// start runs a test program and returns all that it printed.
func start(ctx context.Context, prefix *wine.Prefix, exe, dir, which string) (string, error) {
	c := prefix.Command(exe, "-test.short", "-test.v", "-test.timeout="+deadline, which)
	if strings.HasSuffix(which, "=") {
		c.Args = c.Args[:len(c.Args)-1] // an empty pattern matches everything
	}
	c.Dir = dir
	var all strings.Builder
	c.Stderr = &all
	stdout, err := exec.Run(ctx, c)
	var failed *exec.Error
	if errors.As(err, &failed) {
		err = failed.Err // its last words are in all that it printed
	}
	return string(stdout) + all.String(), err
}

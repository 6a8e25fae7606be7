package gosource

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Git is the user's git. It runs with the user's credentials, proxies and
// URL rewrites, but never asks, never runs hooks and never tidies up.
type Git struct {
	dir      string   // the working folder; empty for this process's own
	env      []string // more environment
	extra    []string // Settings.Env
	field    string   // Settings.Field
	describe []string // Settings.Describe
	conf     [][2]string
}

// NewGit returns a git with the settings that all calls share. A missing or
// too old git is a *fault.Problem of class fault.Host.
func NewGit(ctx context.Context, set Settings) (*Git, error) {
	g := &Git{extra: set.Env, field: set.Field, describe: set.Describe, conf: [][2]string{
		{"core.hooksPath", os.DevNull}, {"core.fsmonitor", "false"},
		{"gc.auto", "0"}, {"maintenance.auto", "false"}, {"protocol.version", "2"}, {"advice.detachedHead", "false"},
		{"http.lowSpeedLimit", "1000"}, {"http.lowSpeedTime", "60"},
	}}
	if set.Offline {
		g.extra = append(slices.Clone(g.extra), "GIT_ALLOW_PROTOCOL=file") // what git fetches on demand is refused too
	}
	out, err := g.Run(ctx, "version")
	if err != nil {
		return nil, err
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "git version %d.%d", &major, &minor); err != nil || major < 2 || (major == 2 && minor < 31) {
		return nil, &fault.Problem{Class: fault.Host, Field: "git", Value: FirstLine(string(out)), Why: "is too old", Fix: "install git 2.31 or newer"}
	}
	return g, nil
}

// In returns a copy that works in dir, with more environment.
func (g *Git) In(dir string, env ...string) *Git {
	c := *g
	c.dir, c.env = dir, append(slices.Clone(g.env), env...)
	return &c
}

// With returns a copy with one more setting. It is handed over in the
// environment, so that what git starts itself has it too.
func (g *Git) With(key, value string) *Git {
	c := *g
	c.conf = append(slices.Clone(g.conf), [2]string{key, value})
	return &c
}

// Run calls git and returns its standard output.
func (g *Git) Run(ctx context.Context, args ...string) ([]byte, error) {
	return Command{Argv: append([]string{"git"}, args...), Dir: g.dir, Env: g.environ(os.Environ())}.Run(ctx)
}

// Text is Run for one line of output.
func (g *Git) Text(ctx context.Context, args ...string) (string, error) {
	out, err := g.Run(ctx, args...)
	return strings.TrimSpace(string(out)), err
}

// environ is the environment of git: nothing that would point it to another
// repository or index than we say.
func (g *Git) environ(base []string) []string {
	var env []string
	ssh := false
	for _, kv := range append(slices.Clone(base), g.extra...) {
		key, _, _ := strings.Cut(kv, "=")
		switch key {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
			"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_TRACE", "GIT_EXTERNAL_DIFF":
			continue
		case "GIT_SSH_COMMAND", "GIT_SSH":
			ssh = true
		}
		env = append(env, kv)
	}
	env = append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_COUNT="+strconv.Itoa(len(g.conf)))
	if !ssh {
		env = append(env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	for i, c := range g.conf {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, c[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, c[1]))
	}
	return append(env, g.env...)
}

// Problem turns a failure of git into what the user can mend.
func (g *Git) Problem(ctx context.Context, err error, value, doing string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	text := OutputOf(err)
	if text == "" {
		return fmt.Errorf("%s: %w", doing, err)
	}
	p := &fault.Problem{Class: fault.Failed, Field: g.field, Value: value, Err: fmt.Errorf("%s: %s", doing, fatalLine(text))}
	has := func(marks ...string) bool {
		return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(text, m) })
	}
	switch {
	case has("No space left on device", "not enough space"):
		p.Class, p.Field, p.Value, p.Why, p.Fix = fault.Host, "disk", "", "is full", "make room in the store's folder (--store)"
	case has("unable to write file", "unable to create file"): // git doesn't say why
		p.Class, p.Field, p.Value, p.Why, p.Fix = fault.Host, "disk", "", "can't be written to, or is full", "make room in the store's folder (--store)"
	case has("transport '") && has("not allowed"):
		p.Class, p.Why, p.Err, p.Fix = fault.Network, "is not on this machine as a whole, and the network must not be used (--offline)", nil, "run it once without --offline"
	case has("Authentication failed", "could not read Username", "could not read Password", "Permission denied (publickey", "terminal prompts disabled"):
		p.Class, p.Why, p.Fix = fault.Input, "wants credentials, or does not exist", "set up git's credentials for it, or check the name"
	case has("not appear to be a git repository", "not found", "does not exist", "404"):
		p.Class, p.Why, p.Fix = fault.Input, "is not a git repository that can be read", "check its URL or path"
	case has("Could not resolve host", "onnection refused", "onnection timed out", "onnection reset", "unable to access", "early EOF", "hung up", "RPC failed", "Operation too slow", "returned error: 5", "returned error: 429"):
		p.Class, p.Why, p.Fix = fault.Network, "could not be reached, or broke off", "check the network and run it again"
	default:
		p.Why, p.Fix = "could not be read by git", "see what git says"
	}
	return p
}

// fatalLine returns the line in which git says what is wrong.
func fatalLine(text string) string {
	for line := range strings.Lines(text) {
		if hasAnyPrefix(line, "fatal:", "error:", "remote:") {
			return strings.TrimSpace(line)
		}
	}
	return FirstLine(text)
}

// WithoutPassword is a remote as it may be shown.
func WithoutPassword(remote string) string {
	return regexp.MustCompile(`^([a-z+]+://)[^/@]*@`).ReplaceAllString(remote, "$1")
}

// absRemote makes a remote that is a path absolute, since git works elsewhere.
func absRemote(remote string) (string, error) {
	if strings.Contains(remote, "://") || regexp.MustCompile(`^[^/\\]{2,}:`).MatchString(remote) {
		return remote, nil
	}
	return filepath.Abs(remote)
}

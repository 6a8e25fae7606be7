package componenttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/internal/gosource/gittest"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
)

// Repo makes a git repository of a project's shape in dir, with a work tree on
// main: tag (annotated) on its first commit, "broken" (a branch that does not
// compile for Windows), and main two commits behind tag. It returns commits by
// the names "tag", "main" and "broken". It may be fetched from in every way that
// real servers offer.
func Repo(ctx context.Context, dir, project, tag string) (map[string]string, error) {
	if err := Tree(dir, project); err != nil {
		return nil, err
	}
	r := &repo{ctx: ctx, dir: dir, commits: map[string]string{}}
	r.git("init", "--quiet", "--initial-branch=main", ".")
	for _, c := range []string{"uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"} {
		r.git("config", c, "true")
	}
	r.commit("tag")
	r.git("tag", "-a", "-m", tag, tag)
	r.commit("second")
	r.commit("main")
	r.git("checkout", "--quiet", "-b", "broken")
	r.breakIt(project)
	r.commit("broken")
	r.git("checkout", "--quiet", "main")
	return r.commits, r.err
}

// repo is a repository being made; the first error stays.
type repo struct {
	ctx     context.Context
	dir     string
	commits map[string]string
	err     error
}

// git runs git and returns what it prints.
func (r *repo) git(args ...string) string {
	if r.err != nil {
		return ""
	}
	var out string
	out, r.err = gittest.Run(r.ctx, r.dir, len(r.commits), args...)
	return out
}

// commit commits the tree, with one file that is new.
func (r *repo) commit(name string) {
	if r.err == nil {
		r.err = os.WriteFile(filepath.Join(r.dir, "CHANGES"), []byte(name+"\n"), 0o644)
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", name)
	r.commits[name] = r.git("rev-parse", "HEAD")
}

// breakIt adds a file that does not compile for Windows.
func (r *repo) breakIt(project string) {
	at := map[string]string{"antrea": "cmd/antrea-agent", "containerd": "cmd/containerd"}[project]
	if at == "" {
		at = "cni-plugin/cmd/calico"
	}
	if r.err == nil {
		r.err = os.WriteFile(filepath.Join(r.dir, filepath.FromSlash(at), "broken_windows.go"), []byte("package main\n\nvar broken int = \"no number\"\n"), 0o644)
	}
}

// Proxy writes a module proxy with containerd v2.3.4 and its shim into dir and
// returns the environment under which the go command uses it, and nothing beyond
// it.
func Proxy(dir string) ([]string, error) {
	env, err := kubetest.Proxy(dir)
	if err != nil {
		return nil, err
	}
	for path, project := range map[string]string{"github.com/containerd/containerd/v2@v2.3.4": "containerd", "github.com/containerd/containerd/v2@v2.3.3": "containerd", hcsshim + "@" + Shim: "hcsshim"} {
		src, err := os.MkdirTemp("", "wbox-fixture-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(src)
		if err := Tree(src, project); err != nil {
			return nil, err
		}
		module, version, _ := strings.Cut(path, "@")
		// A module proxy writes a capital letter as "!" and the small one.
		escaped := strings.ReplaceAll(module, "Microsoft", "!microsoft")
		if err := kubetest.AddModule(dir, escaped, module, version, src, kubetest.Release{Time: "2026-08-12T17:47:31Z"}); err != nil {
			return nil, fmt.Errorf("adding %s to the proxy: %w", path, err)
		}
	}
	return env, nil
}

// Programs compiles a project's fixture into a folder of programs that are
// called by the last elements of packages, and returns the folder. The test is
// skipped where there is no go command.
func Programs(t testing.TB, project, version string, packages ...string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	out := t.TempDir()
	if err := Compile(t.Context(), out, project, version, packages...); err != nil {
		t.Fatal(err)
	}
	return out
}

// Compile is Programs for who has no test at hand.
func Compile(ctx context.Context, out, project, version string, packages ...string) error {
	src, err := os.MkdirTemp("", "wbox-fixture-")
	if err != nil {
		return fmt.Errorf("making a folder for the fixture: %w", err)
	}
	defer os.RemoveAll(src)
	if err := Tree(src, project); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-mod=mod", "-ldflags=-X main.VERSION=" + version, "-o", out + string(filepath.Separator)}, packages...)...)
	cmd.Dir = src
	cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false", "GOPROXY=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the fixture: %w\n%s", err, text)
	}
	return nil
}

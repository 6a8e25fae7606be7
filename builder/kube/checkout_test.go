package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

// gitIn runs git in a checkout.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func resolveDir(t *testing.T, dir string, opts Options) Ref {
	t.Helper()
	ref, err := mustDir(t, dir, opts).Resolve(t.Context(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(data, text...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A checkout is keyed on what is in it: not on times, not on what go doesn't read.
func TestCheckoutIsKeyedOnContent(t *testing.T) {
	dir, commits := gitRepo(t)
	index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	clean := resolveDir(t, dir, Options{})
	remote, err := Parse("git:"+dir+"@master", Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if ref, err := remote.Resolve(t.Context(), report.Discard); err != nil || !reflect.DeepEqual(ref, clean) {
		t.Errorf("a clean checkout is %+v, its commit %+v, %v", clean, ref, err)
	}

	kubelet := filepath.Join(dir, "cmd", "kubelet", "kubelet.go")
	appendTo(t, kubelet, "// one\n")
	dirty := resolveDir(t, dir, Options{})
	if want := "v1.38.0-alpha.0.2+" + commits["master"][:14] + "-dirty"; dirty.Version != want || dirty.TreeState != "dirty" || dirty.Inputs[gosource.TreeInput] == clean.Inputs[gosource.TreeInput] {
		t.Errorf("got %+v, want %s", dirty, want)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(kubelet, later, later); err != nil {
		t.Fatal(err)
	}
	if again := resolveDir(t, dir, Options{}); !reflect.DeepEqual(dirty, again) {
		t.Errorf("another time makes %+v of %+v", again, dirty)
	}
	appendTo(t, kubelet, "// two\n")
	two := resolveDir(t, dir, Options{})
	if two.Inputs[gosource.TreeInput] == dirty.Inputs[gosource.TreeInput] {
		t.Error("another content has the same digest")
	}
	// An untracked file counts, and so does an ignored one that go reads.
	if err := os.WriteFile(filepath.Join(dir, "cmd", "kubelet", "more.go"), []byte("package main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	more := resolveDir(t, dir, Options{})
	appendTo(t, filepath.Join(dir, ".git", "info", "exclude"), "more.go\n*.log\n")
	if err := os.WriteFile(filepath.Join(dir, "x.log"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ignored := resolveDir(t, dir, Options{})
	if more.Inputs[gosource.TreeInput] == two.Inputs[gosource.TreeInput] || ignored.Inputs["ignored-files"] == "" || ignored.Inputs[gosource.TreeInput] != two.Inputs[gosource.TreeInput] {
		t.Errorf("got %v, %v and %v", two.Inputs, more.Inputs, ignored.Inputs)
	}
	// The user's repository is as it was.
	if now, err := os.ReadFile(filepath.Join(dir, ".git", "index")); err != nil || string(now) != string(index) {
		t.Errorf("the index was written (%v)", err)
	}
	if loose := gitIn(t, dir, "fsck", "--unreachable", "--no-reflogs"); strings.Contains(loose, "blob") {
		t.Errorf("objects were left: %s", loose)
	}
}

// What git takes for unchanged is unchanged, whatever the ends of its lines.
func TestCheckoutWithOtherLineEnds(t *testing.T) {
	dir, commits := gitRepo(t)
	gitIn(t, dir, "config", "core.autocrlf", "true")
	if err := os.Remove(filepath.Join(dir, "CHANGES")); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "checkout", "CHANGES")
	if data, err := os.ReadFile(filepath.Join(dir, "CHANGES")); err != nil || string(data) != "master\r\n" {
		t.Fatalf("git wrote %q, %v", data, err)
	}
	if ref := resolveDir(t, dir, Options{}); ref.TreeState != "clean" || ref.Commit != commits["master"] {
		t.Errorf("got %+v", ref)
	}
}

func TestCheckoutFetch(t *testing.T) {
	dir, _ := gitRepo(t)
	appendTo(t, filepath.Join(dir, "cmd", "kubelet", "kubelet.go"), "// mine\n")
	before := gitIn(t, dir, "status", "--porcelain")
	src := mustDir(t, dir, Options{})
	ref, err := src.Resolve(t.Context(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	bits, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard)
	if err != nil || len(bits.Binaries) != 4 || !strings.HasSuffix(bits.Ref.Version, "-dirty") {
		t.Errorf("got %+v, %v", bits, err)
	}
	if after := gitIn(t, dir, "status", "--porcelain"); after != before {
		t.Errorf("the compile changed the checkout: %q, was %q", after, before)
	}
	// What changed since is not what was asked for.
	appendTo(t, filepath.Join(dir, "cmd", "kubelet", "kubelet.go"), "// later\n")
	out := t.TempDir()
	if _, err := src.Fetch(t.Context(), ref, out, t.TempDir(), report.Discard); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(out); len(left) != 0 {
		t.Errorf("a refused build left %v", left)
	}
}

func TestCheckoutRefuses(t *testing.T) {
	origin, _ := gitRepo(t)
	clone := func(args ...string) string {
		dir := filepath.Join(t.TempDir(), "kubernetes")
		gitIn(t, t.TempDir(), append(append([]string{"clone", "--quiet"}, args...), "file://"+filepath.ToSlash(origin), dir)...)
		return dir
	}
	conflict := clone()
	gitIn(t, conflict, "checkout", "--quiet", "-b", "mine", "v1.37.0")
	if err := os.WriteFile(filepath.Join(conflict, "CHANGES"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	gitIn(t, conflict, "commit", "--quiet", "--all", "-m", "mine")
	merge := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "merge", "origin/master")
	merge.Dir = conflict
	if merge.Run() == nil {
		t.Fatal("there is no conflict")
	}
	wrong := clone()
	gitIn(t, wrong, "tag", "-a", "-m", "x", "vendor-2026")
	tests := map[string]struct {
		dir  string
		opts Options
		says string
	}{
		"shallow":  {clone("--depth=1", "--no-tags"), Options{}, "fetch --unshallow --tags"},
		"conflict": {conflict, Options{}, "has a merge conflict in CHANGES"},
		"tag":      {wrong, Options{}, `git describe says "vendor-2026"`},
		"base":     {origin, Options{Base: "v1.37.2"}, "--k8s-base"},
	}
	for name, tt := range tests {
		_, err := mustDir(t, tt.dir, tt.opts).Resolve(t.Context(), report.Discard)
		if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want it to say %q", name, err, tt.says)
		}
	}
	// The user may say the version.
	if ref := resolveDir(t, tests["shallow"].dir, Options{Version: "1.38.0-alpha.9"}); ref.Version != "v1.38.0-alpha.9" || ref.Commit == "" {
		t.Errorf("got %+v", ref)
	}
}

// A tree without a repository says its commit where git archive wrote it.
func TestCheckoutOfAnArchive(t *testing.T) {
	needTools(t, "go")
	dir := t.TempDir()
	if err := kubetest.Tree(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := mustDir(t, dir, Options{}).Resolve(t.Context(), report.Discard); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "--k8s-version") {
		t.Errorf("a tree of no version: got %v", err)
	}
	script := "  if [[ '%' == \"%\" ]]; then\n    KUBE_GIT_COMMIT='" + fixtureCommit + "'\n    if [[ 'HEAD -> x, tag: v1.37.2' =~ tag: ]]; then\n"
	if err := os.WriteFile(filepath.Join(dir, "hack", "lib", "version.sh"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	ref := resolveDir(t, dir, Options{})
	if ref.Version != "v1.37.2" || ref.Commit != fixtureCommit || ref.TreeState != "archive" {
		t.Errorf("got %+v", ref)
	}
	appendTo(t, filepath.Join(dir, "go.mod"), "// changed\n")
	if again := resolveDir(t, dir, Options{}); again.Inputs[gosource.TreeInput] == ref.Inputs[gosource.TreeInput] {
		t.Error("another content has the same digest")
	}
}

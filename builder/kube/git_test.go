package kube

import (
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

func needTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
}

// gitRepo makes the fixture's repository, away from the user's own settings.
func gitRepo(t *testing.T) (string, kubetest.Commits) {
	t.Helper()
	needTools(t, "git", "go")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("SOURCE_DATE_EPOCH", "")
	dir := filepath.Join(t.TempDir(), "kubernetes")
	commits, err := kubetest.Repo(t.Context(), dir, hostGo(t))
	if err != nil {
		t.Fatal(err)
	}
	return dir, commits
}

// overHTTP serves the folder's repositories by git's own smart HTTP server.
func overHTTP(t *testing.T, root string) string {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip(err)
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("needs git http-backend")
	}
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
		InheritEnv: []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}})
	t.Cleanup(server.Close)
	return server.URL
}

func TestGitResolve(t *testing.T) {
	dir, commits := gitRepo(t)
	http := overHTTP(t, filepath.Dir(dir))
	for name, remote := range map[string]string{"file": "file://" + filepath.ToSlash(dir), "path": dir, "http": http + "/kubernetes"} {
		t.Run(name, func(t *testing.T) {
			opts := Options{CacheDir: t.TempDir(), GitURL: remote}
			tests := []struct{ text, commit, version string }{
				{"master", "master", "v1.38.0-alpha.0.2+" + commits["master"][:14]},
				{"release-1.37", "release-1.37", "v1.37.2-1+" + commits["release-1.37"][:14]},
				{"git:" + remote + "@v1.37.2", "v1.37.2", "v1.37.2"},
				{"git:" + remote + "@refs/tags/v1.37.0", "v1.37.0", "v1.37.0"},
				{"git:" + remote, "master", "v1.38.0-alpha.0.2+" + commits["master"][:14]},
				{commits["v1.38.0-alpha.0"], "v1.38.0-alpha.0", "v1.38.0-alpha.0"},
				{commits["first"][:9], "first", "v1.38.0-alpha.0.1+" + commits["first"][:14]},
				{"pull/4242", "pull/4242", "v1.38.0-alpha.0.3+" + commits["pull/4242"][:14]},
				{"pull/4242/merge", "pull/4242/merge", "v1.38.0-alpha.0.4+" + commits["pull/4242/merge"][:14]},
			}
			for _, tt := range tests {
				src, err := Parse(tt.text, opts)
				if err != nil {
					t.Fatal(err)
				}
				ref, err := src.Resolve(t.Context(), report.Discard)
				if err != nil {
					t.Errorf("%s: %v", tt.text, err)
					continue
				}
				if ref.Commit != commits[tt.commit] || ref.Version != tt.version || ref.Source != "git" || ref.TreeState != "clean" || !strings.HasPrefix(ref.BuildDate, "2026-08-01T") {
					t.Errorf("%s: got %+v, want %s at %s", tt.text, ref, tt.version, commits[tt.commit])
				}
			}
		})
	}
}

// A commit that no branch has is found by its full hash, since servers give
// what they have; the mirror holds no file of it that was not asked for.
func TestGitHashOfNoBranch(t *testing.T) {
	dir, commits := gitRepo(t)
	opts := Options{CacheDir: t.TempDir(), GitURL: "file://" + filepath.ToSlash(dir)}
	src, err := Parse(commits["pull/4242"], opts)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := src.Resolve(t.Context(), report.Discard)
	if err != nil || ref.Commit != commits["pull/4242"] {
		t.Fatalf("got %+v, %v", ref, err)
	}
	mirror := filepath.Join(opts.CacheDir, "git", "mirror.git")
	cmd := exec.Command("git", "--git-dir="+mirror, "rev-list", "--objects", "--missing=print", commits["pull/4242"])
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "\n?") {
		t.Errorf("the mirror has every file (%v):\n%s", err, out)
	}
	if config, _ := os.ReadFile(filepath.Join(mirror, "config")); strings.Contains(string(config), "file://") {
		t.Errorf("the mirror's settings name the remote:\n%s", config)
	}
}

// Forks share the mirror, not their tags; a commit of one is not one of the other.
func TestGitForks(t *testing.T) {
	one, commits := gitRepo(t)
	two := filepath.Join(t.TempDir(), "fork")
	forked, err := kubetest.Repo(t.Context(), two, "1.26.1")
	if err != nil {
		t.Fatal(err)
	}
	if commits["v1.37.2"] == forked["v1.37.2"] {
		t.Fatal("the fork has the same commits")
	}
	opts := Options{CacheDir: t.TempDir()}
	for dir, want := range map[string]kubetest.Commits{one: commits, two: forked} {
		_, ref, err := resolveText(t, "git:"+dir+"@release-1.37", opts, report.Discard)
		if err != nil || ref.Commit != want["release-1.37"] || ref.Version != "v1.37.2-1+"+want["release-1.37"][:14] {
			t.Errorf("%s: got %+v, %v", dir, ref, err)
		}
	}
	if _, _, err := resolveText(t, "git:"+one+"@"+forked["release-1.37"][:12], opts, report.Discard); fault.ClassOf(err) != fault.Input {
		t.Errorf("the fork's commit in the other repository: got %v", err)
	}
}

// A connection that breaks is made again.
func TestGitTriesAgain(t *testing.T) {
	dir, commits := gitRepo(t)
	var mu sync.Mutex
	asked := 0
	backend := overHTTP(t, filepath.Dir(dir))
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		n := asked
		mu.Unlock()
		if n <= 2 {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	rec := &recorder{}
	opts := Options{CacheDir: t.TempDir(), RetryPause: time.Millisecond}
	_, ref, err := resolveText(t, "git:"+server.URL+"/kubernetes@master", opts, rec)
	if err != nil || ref.Commit != commits["master"] || len(rec.messages(report.Note)) == 0 {
		t.Errorf("got %+v, %v after %d requests, %v", ref, err, asked, rec.events)
	}
}

func TestGitRefuses(t *testing.T) {
	dir, _ := gitRepo(t)
	remote := "file://" + filepath.ToSlash(dir)
	for text, want := range map[string]struct {
		class fault.Class
		says  []string
	}{
		"git:" + remote + "@v1.37.9":          {fault.Input, []string{"has no ref or commit v1.37.9", "the nearest tags: v1.37.0, v1.37.2, v1.38.0-alpha.0"}},
		"git:" + remote + "@nowhere":          {fault.Input, []string{"its branches: broken, master, release-1.37"}},
		"0123456789":                          {fault.Input, []string{"has no ref or commit 0123456789"}},
		"pull/99":                             {fault.Input, []string{"has no ref or commit pull/99"}},
		"git:" + remote + "-none@master":      {fault.Input, []string{"is not a git repository"}},
		"git:http://127.0.0.1:1/k.git@master": {fault.Network, []string{"http://127.0.0.1:1/k.git", "could not be reached"}},
	} {
		src, err := Parse(text, Options{CacheDir: t.TempDir(), GitURL: remote, RetryPause: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.Resolve(t.Context(), report.Discard)
		if fault.ClassOf(err) != want.class {
			t.Errorf("%s: got %v, want class %d", text, err, want.class)
			continue
		}
		for _, says := range want.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: got %v, want it to say %q", text, err, says)
			}
		}
	}
}

// Parallel builds share the mirror; the same commit gives the same bytes from
// another folder with an empty cache of the go command.
func TestGitFetchIsReproducible(t *testing.T) {
	dir, commits := gitRepo(t)
	cache := t.TempDir()
	var all [3]Bits
	var wg sync.WaitGroup
	for i, text := range []string{"pull/4242", "git:" + dir + "@" + commits["pull/4242"], "pull/4242"} {
		opts := Options{CacheDir: cache, GitURL: "file://" + filepath.ToSlash(dir)}
		if i == 2 {
			if testing.Short() {
				continue // it compiles the standard library
			}
			opts.CacheDir = t.TempDir()
			opts.Env = []string{"GOCACHE=" + t.TempDir()}
		}
		out, scratch := t.TempDir(), t.TempDir()
		wg.Go(func() {
			src, err := Parse(text, opts)
			if err != nil {
				t.Error(err)
				return
			}
			ref, err := src.Resolve(t.Context(), report.Discard)
			if err != nil {
				t.Error(err)
				return
			}
			if all[i], err = src.Fetch(t.Context(), ref, out, scratch, report.Discard); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(scratch, "src")); err == nil {
				t.Error("the source stays")
			}
		})
	}
	wg.Wait()
	for i := range all {
		if i == 2 && testing.Short() {
			continue
		}
		for j := range all[i].Binaries {
			all[i].Binaries[j].From = ""
		}
		if len(all[i].Binaries) != 4 || !reflect.DeepEqual(all[0], all[i]) {
			t.Errorf("build %d: got %+v, want %+v", i, all[i], all[0])
		}
	}
}

func TestGitDoesNotCompile(t *testing.T) {
	dir, _ := gitRepo(t)
	src, err := Parse("git:"+dir+"@broken", Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := src.Resolve(t.Context(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	_, err = src.Fetch(t.Context(), ref, t.TempDir(), scratch, report.Discard)
	for _, part := range []string{ref.Version, "cmd/kubelet/kubelet_windows.go:3:18: ", "does not compile for Windows", filepath.Join(scratch, "go-build.log")} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want it to say %q", err, part)
		}
	}
}

// What a killed git leaves does not stop the next one.
func TestGitStaleLocks(t *testing.T) {
	dir, commits := gitRepo(t)
	opts := Options{CacheDir: t.TempDir(), GitURL: "file://" + filepath.ToSlash(dir)}
	src, err := Parse("master", opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Resolve(t.Context(), report.Discard); err != nil {
		t.Fatal(err)
	}
	mirror := filepath.Join(opts.CacheDir, "git", "mirror.git")
	var locks int
	err = filepath.WalkDir(filepath.Join(mirror, "refs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			locks++
			return os.WriteFile(path+".lock", nil, 0o644)
		}
		return err
	})
	if err != nil || locks == 0 {
		t.Fatalf("%d locks, %v", locks, err)
	}
	if err := os.WriteFile(filepath.Join(mirror, "packed-refs.lock"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if ref, err := src.Resolve(t.Context(), report.Discard); err != nil || ref.Commit != commits["master"] {
		t.Errorf("got %+v, %v", ref, err)
	}
}

// A tree's tag may carry a release's name. Compiling it must not tell the module
// cache, which the module source asks, anything about that release.
func TestCheckoutLeavesTheModuleCacheAlone(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("GOMODCACHE", cache)
	t.Setenv("GOFLAGS", "-modcacherw") // so that the test's folder can be removed
	dir, _ := gitRepo(t)
	gitIn(t, dir, "checkout", "-q", "v1.37.2")
	src := mustDir(t, dir, Options{CacheDir: t.TempDir()})
	ref, err := src.Resolve(t.Context(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(cache, func(p string, _ fs.DirEntry, err error) error {
		if strings.Contains(filepath.ToSlash(p), "/k8s.io/kubernetes") {
			t.Errorf("the module cache got %s", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// With --linux and --debug the same commit gives more programs, and larger ones.
func TestGitLinuxAndDebug(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the standard library twice more")
	}
	dir, _ := gitRepo(t)
	sizes := map[bool]int64{}
	for _, debug := range []bool{false, true} {
		src, err := Parse("git:"+dir+"@v1.37.2", Options{CacheDir: t.TempDir(), Linux: true, Debug: debug})
		if err != nil {
			t.Fatal(err)
		}
		ref, err := src.Resolve(t.Context(), report.Discard)
		if err != nil {
			t.Fatal(err)
		}
		bits, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, b := range bits.Binaries {
			files = append(files, b.File)
			if b.File == "kubelet.exe" {
				sizes[debug] = b.Size
			}
		}
		want := "kube-log-runner.exe kube-proxy.exe kubeadm kubeadm.exe kubectl kubelet kubelet.exe"
		if got := strings.Join(files, " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if sizes[true] <= sizes[false] {
		t.Errorf("sizes with and without symbols: %v", sizes)
	}
}

package component

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/component/componenttest"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// fixture is a repository of a project's shape.
type fixture struct {
	dir     string
	commits map[string]string
	opts    Options // with the module proxy that the shim comes from
}

func newFixture(t *testing.T, project, tag string) fixture {
	t.Helper()
	for _, tool := range []string{"git", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("SOURCE_DATE_EPOCH", "")
	f := fixture{dir: filepath.Join(t.TempDir(), project)}
	var err error
	if f.commits, err = componenttest.Repo(t.Context(), f.dir, project, tag); err != nil {
		t.Fatal(err)
	}
	f.opts = Options{CacheDir: t.TempDir()}
	if f.opts.Env, err = componenttest.Proxy(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return f
}

// request parses the text of the flag that the project belongs to.
func request(t *testing.T, project, text string) Request {
	t.Helper()
	parse := ParseCNI
	if project == Containerd {
		parse = ParseContainerd
	}
	r, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// resolve resolves a request.
func resolve(t *testing.T, r Request, opts Options) (Source, Ref, error) {
	t.Helper()
	src, err := r.Source(opts)
	if err != nil {
		return nil, Ref{}, err
	}
	ref, err := src.Resolve(t.Context(), report.Discard)
	return src, ref, err
}

// fetch gets the programs and checks that they are those that are recorded.
func fetch(t *testing.T, src Source, ref Ref) (Bits, string) {
	t.Helper()
	dir := t.TempDir()
	bits, err := src.Fetch(t.Context(), ref, dir, t.TempDir(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != len(bits.Binaries) {
		t.Errorf("the folder holds %v (%v), recorded are %+v", left, err, bits.Binaries)
	}
	return bits, dir
}

func files(bits Bits) (out []string) {
	for _, b := range bits.Binaries {
		out = append(out, b.File)
	}
	return out
}

// prefix is how a text of the flag names a source of the project.
func prefix(project string) string {
	if project == Containerd {
		return ""
	}
	return project + "@"
}

func TestGit(t *testing.T) {
	for _, tt := range []struct {
		project, fixture, tag string
		versions              map[string]string // by ref; $ stands for the first nine digits of the commit, $$ for twelve
		files                 []string
	}{
		{Antrea, "antrea", "v2.7.0", map[string]string{"v2.7.0": "v2.7.0", "main": "v2.7.0-$"}, []string{"antctl.exe", "antrea-agent.exe", "antrea-cni.exe"}},
		{Calico, "calico", "v3.32.1", map[string]string{"v3.32.1": "v3.32.1", "main": "v3.32.1-2-g$$"}, []string{"calico-ipam.exe", "calico-node.exe", "calico.exe"}},
		{Calico, "calico-3.33", "v3.33.0-0.dev", map[string]string{"main": "v3.33.0-0.dev-2-g$$"}, []string{"calico-ipam.exe", "calico.exe"}},
		{Containerd, "containerd", "v2.3.4", map[string]string{"v2.3.4": "v2.3.4", "main": "v2.3.4-2-g$"},
			[]string{"containerd-shim-runhcs-v1.exe", "containerd.exe", "ctr.exe"}},
	} {
		t.Run(tt.fixture, func(t *testing.T) {
			if testing.Short() && tt.fixture != "antrea" {
				t.Skip("compiles; one project stands for all where it has to be quick")
			}
			f := newFixture(t, tt.fixture, tt.tag)
			var digests []string
			for name, remote := range map[string]string{"file": "file://" + filepath.ToSlash(f.dir), "path": f.dir} {
				for ref, version := range tt.versions {
					commit := f.commits["main"]
					if ref != "main" {
						commit = f.commits["tag"]
					}
					version = strings.NewReplacer("$$", commit[:12], "$", commit[:9]).Replace(version)
					src, got, err := resolve(t, request(t, tt.project, prefix(tt.project)+"git:"+remote+"@"+ref), f.opts)
					if err != nil {
						t.Fatalf("%s %s: %v", name, ref, err)
					}
					if got.Source != "git" || got.Version != version || got.Commit != commit || got.TreeState != "clean" || !strings.HasPrefix(got.Toolchain, "go1.") {
						t.Errorf("%s %s: got %+v, want %s at %s", name, ref, got, version, commit)
					}
					if ref != "main" {
						continue
					}
					bits, _ := fetch(t, src, got)
					if !reflect.DeepEqual(files(bits), tt.files) {
						t.Errorf("got %v, want %v", files(bits), tt.files)
					}
					digests = append(digests, bits.Binaries[0].SHA256)
				}
			}
			if len(digests) != 2 || digests[0] != digests[1] {
				t.Errorf("not reproducible: %v", digests)
			}
		})
	}
}

// The repository of refs that name none can be set, over git's own HTTP server
// too; a commit is found by its first digits, and the mirror is used again.
func TestGitOverHTTP(t *testing.T) {
	f := newFixture(t, "antrea", "v2.7.0")
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip(err)
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("needs git http-backend")
	}
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(f.dir), "GIT_HTTP_EXPORT_ALL=1"},
		InheritEnv: []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}})
	t.Cleanup(server.Close)
	f.opts.GitURLs = map[string]string{Antrea: server.URL + "/antrea"}
	src, ref, err := resolve(t, request(t, Antrea, "antrea@"+f.commits["main"][:8]), f.opts)
	if err != nil || ref.Commit != f.commits["main"] {
		t.Fatalf("got %+v, %v", ref, err)
	}
	if bits, _ := fetch(t, src, ref); !strings.Contains(bits.Binaries[0].From, "compiled from "+server.URL+"/antrea at "+ref.Commit) {
		t.Errorf("got %+v", bits.Binaries[0])
	}
	server.Close()
	f.opts.Offline = true
	if _, again, err := resolve(t, request(t, Antrea, "antrea@"+f.commits["main"]), f.opts); err != nil || !reflect.DeepEqual(again, ref) {
		t.Errorf("from the mirror alone: got %+v, %v", again, err)
	}
	if _, _, err := resolve(t, request(t, Antrea, "antrea@"+strings.Repeat("ab", 20)), f.opts); fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), "--offline") {
		t.Errorf("what was not fetched: %v", err)
	}
}

func TestGitRefuses(t *testing.T) {
	f := newFixture(t, "calico", "v3.32.1")
	f.opts.GitURLs = map[string]string{Calico: f.dir, Antrea: f.dir}
	for text, says := range map[string]string{
		"calico@v3.32.2": "the nearest tags: v3.32.1",
		"calico@mian":    "its branches: broken, main",
		"antrea@main":    "its module is github.com/projectcalico/calico",
	} {
		r := request(t, Calico, text)
		_, _, err := resolve(t, r, f.opts)
		if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--cni "+text) {
			t.Errorf("%s: got %v, want %q", text, err, says)
		}
	}
}

// What does not compile is told by file, line and ref, with the whole log kept.
func TestBroken(t *testing.T) {
	f := newFixture(t, "containerd", "v2.3.4")
	src, ref, err := resolve(t, request(t, Containerd, "git:"+f.dir+"@broken"), f.opts)
	if err != nil {
		t.Fatal(err)
	}
	dir, scratch := t.TempDir(), t.TempDir()
	_, err = src.Fetch(t.Context(), ref, dir, scratch, report.Discard)
	log := filepath.Join(scratch, "go-build.log")
	for _, want := range []string{"--containerd " + ref.Version, "does not compile for Windows", "broken_windows.go:3:", "cannot use", log} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if data, err := os.ReadFile(log); err != nil || !strings.Contains(string(data), "broken_windows.go") {
		t.Errorf("the log: %s, %v", data, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("a failed compile left %v", left)
	}
}

// A checkout is keyed on its content and compiled where it lies.
func TestCheckout(t *testing.T) {
	f := newFixture(t, "antrea", "v2.7.0")
	r := request(t, Antrea, f.dir)
	_, clean, err := resolve(t, r, f.opts)
	if err != nil || clean.Source != "git" || clean.Version != "v2.7.0-"+f.commits["main"][:9] {
		t.Fatalf("got %+v, %v", clean, err)
	}
	agent := filepath.Join(f.dir, "cmd", "antrea-agent", "main.go")
	data, err := os.ReadFile(agent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(agent, append(data, "\nfunc init() { println(\"patched\") }\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	src, dirty, err := resolve(t, r, f.opts)
	if err != nil || dirty.TreeState != "dirty" || dirty.Version != clean.Version+".dirty" || dirty.Inputs[gosource.TreeInput] == clean.Inputs[gosource.TreeInput] {
		t.Fatalf("got %+v, %v", dirty, err)
	}
	bits, dir := fetch(t, src, dirty)
	exe, err := os.ReadFile(filepath.Join(dir, "antrea-agent.exe"))
	if err != nil || !strings.Contains(string(exe), "patched") || !strings.Contains(string(exe), f.commits["main"][:9]) {
		t.Errorf("the change is not in it: %v", err)
	}
	if bits.Ref.Version != dirty.Version {
		t.Errorf("got %+v", bits.Ref)
	}
	if err := os.WriteFile(agent, append(data, "\nfunc init() { println(\"again\") }\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(t.Context(), dirty, t.TempDir(), t.TempDir(), report.Discard); err == nil || !strings.Contains(err.Error(), "has changed since it was looked at") {
		t.Errorf("another content: got %v", err)
	}
	if err := os.WriteFile(agent, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, back, err := resolve(t, r, f.opts); err != nil || !reflect.DeepEqual(back, clean) {
		t.Errorf("the old content: got %+v, %v", back, err)
	}
}

// A release is compiled from its module, the shim from the one that it names.
func TestModule(t *testing.T) {
	f := newFixture(t, "containerd", "v2.3.4")
	src, ref, err := resolve(t, request(t, Containerd, "2.3.4"), f.opts)
	if err != nil {
		t.Fatal(err)
	}
	if ref.Source != "module" || ref.Version != "v2.3.4" || ref.BuildDate != "2026-08-12T17:47:31Z" || len(ref.Inputs) != 3 || ref.Inputs[hcsshim+"@"+componenttest.Shim] == "" {
		t.Errorf("got %+v", ref)
	}
	bits, _ := fetch(t, src, ref)
	if want := []string{"containerd-shim-runhcs-v1.exe", "containerd.exe", "ctr.exe"}; !reflect.DeepEqual(files(bits), want) {
		t.Errorf("got %v", files(bits))
	}
	if from := bits.Binaries[0].From; !strings.Contains(from, "compiled from github.com/Microsoft/hcsshim@"+componenttest.Shim) {
		t.Errorf("the shim is %s", from)
	}
	if _, _, err := resolve(t, request(t, Containerd, "2.3.5"), f.opts); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "the nearest that do: v2.3.3, v2.3.4") {
		t.Errorf("a version that is not there: %v", err)
	}
	for name := range ref.Inputs {
		other := ref
		other.Inputs = map[string]string{}
		for n, d := range ref.Inputs {
			other.Inputs[n] = d
		}
		other.Inputs[name] = "h1:other"
		if _, err := src.Fetch(t.Context(), other, t.TempDir(), t.TempDir(), report.Discard); fault.ClassOf(err) != fault.Input {
			t.Errorf("another %s: got %v", name, err)
		}
	}
	f.opts.Offline = true
	f.opts.Env = append(f.opts.Env, "GOMODCACHE="+t.TempDir())
	if _, _, err := resolve(t, request(t, Containerd, "2.3.4"), f.opts); fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), "--offline") {
		t.Errorf("offline with nothing: %v", err)
	}
}

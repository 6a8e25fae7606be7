package kube

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

const (
	fixtureCommit = "0123456789abcdef0123456789abcdef01234567"
	fixtureDate   = "2026-10-27T12:01:04Z"
)

// proxySource returns the source of a release on a module proxy of its own.
func proxySource(t *testing.T, version string, releases ...kubetest.Release) *moduleSource {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	env, err := kubetest.Proxy(t.TempDir(), releases...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseModule(field, version, Options{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hostGo is the version of the go command in PATH, without "go".
func hostGo(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "env", "GOVERSION")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("needs the go command: %v", err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "go")
}

func TestModule(t *testing.T) {
	s := proxySource(t, "v1.37.2", kubetest.Release{Version: "v1.37.2", Commit: fixtureCommit, Time: "2026-10-27T14:01:04+02:00", GoVersion: hostGo(t)})
	rec := &recorder{}
	ref, err := s.Resolve(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	if w := rec.messages(report.Warning); len(w) != 0 {
		t.Errorf("warned of %q", w)
	}
	inputs := ref.Inputs
	ref.Inputs = nil
	want := Ref{Source: "module", Version: "v1.37.2", Commit: fixtureCommit, BuildDate: fixtureDate, TreeState: "clean", Toolchain: "go" + hostGo(t)}
	if !reflect.DeepEqual(ref, want) {
		t.Errorf("got %+v, want %+v", ref, want)
	}
	ref.Inputs = inputs
	for _, name := range []string{"k8s.io/kubernetes@v1.37.2", "k8s.io/client-go@v0.37.2", "k8s.io/component-base@v0.37.2", buildInputName} {
		if inputs[name] == "" || len(inputs) != 4 {
			t.Errorf("got the inputs %v", inputs)
		}
	}
	var all []Bits
	for range 2 {
		dir := t.TempDir()
		bits, err := s.Fetch(t.Context(), ref, dir, t.TempDir(), rec)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range bits.Binaries {
			st, err := os.Stat(filepath.Join(dir, b.File))
			if err != nil || st.Size() != b.Size || b.Name != Programs()[i] {
				t.Errorf("%+v: %v", b, err)
			}
		}
		all = append(all, bits)
	}
	if !reflect.DeepEqual(all[0], all[1]) || len(all[0].Binaries) != 4 {
		t.Errorf("built twice: %+v", all)
	}
}

// The proof of stamping must not be fooled by an unstamped build, whatever is
// known of the release.
func TestModuleUnstampedIsRefused(t *testing.T) {
	for name, r := range map[string]kubetest.Release{
		"commit and date": {Commit: fixtureCommit, Time: fixtureDate},
		"date":            {Time: fixtureDate},
		"nothing":         {},
	} {
		t.Run(name, func(t *testing.T) {
			r.Version, r.GoVersion = "v1.37.2", hostGo(t)
			s := proxySource(t, "v1.37.2", r)
			s.programs = []string{Kubelet}
			ref, err := s.Resolve(t.Context(), report.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard); err != nil {
				t.Fatalf("a stamped build is refused: %v", err)
			}
			dir := t.TempDir()
			_, err = unstamped(t, s, ref).All(t.Context(), dir)
			if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "not stamped") {
				t.Errorf("an unstamped build: got %v", err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("an unstamped build left %v", left)
			}
		})
	}
}

// unstamped returns a build whose kubelet will be linked without version variables.
func unstamped(t *testing.T, s *moduleSource, ref Ref) *gosource.Build {
	t.Helper()
	g, err := gosource.NewGoTool(t.Context(), s.opts.settings())
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	b, err := gosource.NewBuild(s.opts.settings(), ref, g, scratch, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	b.Env, b.Root, b.Programs = g.BuildEnv(os.Environ(), ref.Toolchain), filepath.Join(scratch, "m"), programsOf(Options{}.targets(s.programs))
	b.Expect = func(p gosource.Program) Expect { return expectModule(ref, p) }
	if err := s.prepare(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.Flags = []string{"-trimpath", "-tags=" + b.Tags, "-ldflags=-s -w"}
	return b
}

func TestModuleDoesNotCompile(t *testing.T) {
	s := proxySource(t, "v1.37.2", kubetest.Release{Version: "v1.37.2", Time: fixtureDate, GoVersion: hostGo(t), Broken: true})
	ref, err := s.Resolve(t.Context(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	dir, scratch := t.TempDir(), t.TempDir()
	_, err = s.Fetch(t.Context(), ref, dir, scratch, report.Discard)
	log := filepath.Join(scratch, "go-build.log")
	for _, part := range []string{"--k8s v1.37.2", "k8s.io/kubernetes@v1.37.2/cmd/kubelet/kubelet_windows.go:3:18: ", log} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want it to say %q", err, part)
		}
	}
	if text, _ := os.ReadFile(log); !bytes.Contains(text, []byte("kubelet_windows.go")) {
		t.Errorf("the log says %q", text)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("a failed build left %v", left)
	}
}

func TestModuleUnknownVersion(t *testing.T) {
	var releases []kubetest.Release
	for _, v := range []string{"v1.36.1", "v1.36.3", "v1.37.2"} {
		releases = append(releases, kubetest.Release{Version: v})
	}
	_, err := proxySource(t, "v1.36.2", releases...).Resolve(t.Context(), report.Discard)
	if fault.ClassOf(err) != fault.Input || !strings.HasSuffix(err.Error(), "--k8s v1.36.2: does not exist; the nearest that do: v1.36.1, v1.36.3, v1.37.2") {
		t.Errorf("got %v", err)
	}
	_, err = proxySource(t, "v1.36.2").Resolve(t.Context(), report.Discard)
	if err == nil || !strings.Contains(err.Error(), "can't be listed") {
		t.Errorf("without a list: got %v", err)
	}
}

// The official toolchain that can't be had is replaced by the machine's own,
// and said; what is newer than that is refused.
func TestModuleToolchain(t *testing.T) {
	s := proxySource(t, "v1.37.2", kubetest.Release{Version: "v1.37.2", Time: fixtureDate, GoVersion: "1.21.99"})
	rec := &recorder{}
	ref, err := s.Resolve(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	if ref.Toolchain != "go"+hostGo(t) {
		t.Errorf("got the toolchain %s", ref.Toolchain)
	}
	if w := strings.Join(rec.messages(report.Warning), "\n"); !strings.Contains(w, "go1.21.99, which could not be downloaded") || !strings.Contains(w, "commit") {
		t.Errorf("warned of %q", w)
	}
}

// A staging module that the proxy lacks matters only if a program needs it.
func TestModuleStagingNotServed(t *testing.T) {
	s := proxySource(t, "v1.37.2", kubetest.Release{Version: "v1.37.2", Time: fixtureDate, GoVersion: hostGo(t)})
	proxy := strings.TrimPrefix(s.opts.Env[0], "GOPROXY=file://")
	if runtime.GOOS == "windows" {
		proxy = strings.TrimPrefix(proxy, "/")
	}
	for _, ext := range []string{".info", ".zip"} {
		if err := os.Remove(filepath.Join(proxy, "k8s.io/client-go/@v/v0.37.2"+ext)); err != nil {
			t.Fatal(err)
		}
	}
	for program, ok := range map[string]bool{KubeLogRunner: true, Kubelet: false} {
		s.programs = []string{program}
		ref, err := s.Resolve(t.Context(), report.Discard)
		if err != nil || ref.Inputs["k8s.io/client-go@v0.37.2"] != "" || len(ref.Inputs) != 3 {
			t.Fatalf("got %+v, %v", ref, err)
		}
		if _, err = s.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard); (err == nil) != ok {
			t.Errorf("%s: got %v", program, err)
		}
		if !ok && (fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), "k8s.io/client-go")) {
			t.Errorf("%s: got %v, want the module to be named", program, err)
		}
	}
}

func TestModuleRefOfAnotherWbox(t *testing.T) {
	s := proxySource(t, "v1.37.2", kubetest.Release{Version: "v1.37.2", Time: fixtureDate, GoVersion: hostGo(t)})
	ref, err := s.Resolve(t.Context(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{buildInputName, "k8s.io/kubernetes@v1.37.2"} {
		changed := ref
		changed.Inputs = map[string]string{}
		for k, v := range ref.Inputs {
			changed.Inputs[k] = v
		}
		changed.Inputs[name] = "h1:other"
		if _, err := s.Fetch(t.Context(), changed, t.TempDir(), t.TempDir(), report.Discard); fault.ClassOf(err) != fault.Input {
			t.Errorf("another %s: got %v", name, err)
		}
	}
}

package kube

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/wine"
	"github.com/wbox-dev/wbox/builder/report"
)

const realVersion = "v1.37.2"

// recorder keeps the events of a call.
type recorder struct {
	mu     sync.Mutex
	events []report.Event
}

func (r *recorder) Emit(e report.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) messages(kind report.Kind) (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == kind {
			out = append(out, e.Message)
		}
	}
	return out
}

// resolveReal resolves a real release and skips where the module proxy can't
// be reached.
func resolveReal(t *testing.T, s *moduleSource) (Ref, *recorder) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the module proxy")
	}
	rec := &recorder{}
	ref, err := s.Resolve(t.Context(), rec)
	if c := fault.ClassOf(err); c == fault.Network || c == fault.Host {
		t.Skipf("needs the module proxy and a go command: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ref, rec
}

func realSource(t *testing.T, version string, programs ...string) *moduleSource {
	t.Helper()
	s, err := parseModule(field, version, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if programs != nil {
		s.programs = programs
	}
	return s
}

// fetchReal fetches into new folders and returns the bits and their folder.
func fetchReal(t *testing.T, s *moduleSource, ref Ref) (Bits, string) {
	t.Helper()
	dir := t.TempDir()
	start := time.Now()
	rec := &recorder{}
	bits, err := s.Fetch(t.Context(), ref, dir, t.TempDir(), rec)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events in %v", len(rec.events), time.Since(start).Round(time.Millisecond))
	for _, b := range bits.Binaries {
		t.Logf("%-16s %11d bytes sha256 %s, %s", b.File, b.Size, b.SHA256, b.From)
		if _, err := os.Stat(filepath.Join(dir, b.File)); err != nil {
			t.Error(err)
		}
	}
	var last report.Event // of the compile: the programs may be run afterwards
	for _, e := range rec.events {
		if e.Total > 0 {
			last = e
		}
	}
	if last.Done != last.Total || last.Total < 50 {
		t.Errorf("the last progress is %+v, want all packages done", last)
	}
	return bits, dir
}

// The smallest program takes the same path as all of them, and seconds.
func TestRealModuleLogRunner(t *testing.T) {
	s := realSource(t, realVersion, KubeLogRunner)
	ref, rec := resolveReal(t, s)
	t.Logf("ref: version %s commit %q date %q toolchain %s, %d inputs", ref.Version, ref.Commit, ref.BuildDate, ref.Toolchain, len(ref.Inputs))
	if ref.Commit == "" && !strings.Contains(strings.Join(rec.messages(report.Warning), "\n"), "commit") {
		t.Error("an unknown commit is not warned of")
	}
	for _, in := range []string{"k8s.io/kubernetes@v1.37.2", "k8s.io/component-base@v0.37.2"} {
		if !strings.HasPrefix(ref.Inputs[in], "h1:") {
			t.Errorf("input %s is %q, want a digest", in, ref.Inputs[in])
		}
	}
	again, _ := resolveReal(t, s)
	if !reflect.DeepEqual(ref, again) {
		t.Errorf("resolved twice: %+v and %+v", ref, again)
	}
	first, _ := fetchReal(t, s, ref)
	second, _ := fetchReal(t, s, ref)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("built twice from one ref: %+v and %+v", first, second)
	}
}

// A ref that pins another digest of a staging module must not build.
func TestRealModulePinsAreKept(t *testing.T) {
	s := realSource(t, realVersion, KubeLogRunner)
	ref, _ := resolveReal(t, s)
	ref.Inputs["k8s.io/component-base@v0.37.2"] = ref.Inputs["k8s.io/api@v0.37.2"]
	dir := t.TempDir()
	_, err := s.Fetch(t.Context(), ref, dir, t.TempDir(), report.Discard)
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("got %v, want a refused checksum", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("a refused build left %v", left)
	}
}

func TestRealModuleUnknownVersion(t *testing.T) {
	resolveReal(t, realSource(t, realVersion)) // skips where there is no proxy
	_, err := realSource(t, "v1.36.99").Resolve(t.Context(), report.Discard)
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "v1.36.3, v1.37.2") {
		t.Errorf("got %v, want the nearest versions", err)
	}
	s := realSource(t, "v1.36.99")
	s.opts.Env = []string{"GOPROXY=off"}
	_, err = s.Resolve(t.Context(), report.Discard)
	if fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), "GOPROXY") {
		t.Errorf("without a proxy: got %v, want the network to be named", err)
	}
}

func TestRealModuleCancel(t *testing.T) {
	s := realSource(t, realVersion, KubeLogRunner)
	ref, _ := resolveReal(t, s)
	s.opts.Env = []string{"GOCACHE=" + t.TempDir()} // so that there is something to compile
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sink := report.SinkFunc(func(e report.Event) {
		if strings.HasPrefix(e.Message, "compiling ") {
			cancel()
		}
	})
	start := time.Now()
	_, err := s.Fetch(ctx, ref, t.TempDir(), t.TempDir(), sink)
	if !errors.Is(err, context.Canceled) || fault.ClassOf(err) != fault.Interrupted {
		t.Errorf("got %v, want the context's error", err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("a cancelled compile took %v", d)
	}
}

// All programs, twice, in different folders: the second time only links. The
// first time takes ten CPU-minutes unless the go command's cache is warm.
func TestRealModuleAll(t *testing.T) {
	version := os.Getenv("WBOX_TEST_COMPILE")
	if version == "" {
		t.Skip("compiles a whole Kubernetes: set WBOX_TEST_COMPILE to a version")
	}
	t.Setenv(wine.Variable, "") // where there is one, the programs are run, too
	s := realSource(t, version)
	s.opts.CacheDir = t.TempDir()
	ref, _ := resolveReal(t, s)
	t.Logf("commit %q date %q toolchain %s, %d inputs", ref.Commit, ref.BuildDate, ref.Toolchain, len(ref.Inputs))
	first, _ := fetchReal(t, s, ref)
	second, _ := fetchReal(t, s, ref)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("built twice from one ref: %+v and %+v", first, second)
	}
}

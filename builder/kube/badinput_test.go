package kube

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

// A source that needs a newer Go than there is, and than can be had, is told
// before anything is compiled.
func TestGoTooOldForTheRef(t *testing.T) {
	dir, _ := gitRepo(t)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "go.mod"), []byte(strings.Replace(string(mod), "go 1.21\n", "go 1.99.0\n", 1)), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ".go-version"), []byte("1.99.3\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	module := proxySource(t, "v1.37.2", kubetest.Release{Version: "v1.37.2", Time: fixtureDate, GoVersion: "1.99.3", NeedsGo: "1.99.0"})
	for text, opts := range map[string]Options{dir: {Env: []string{"GOPROXY=off"}}, "v1.37.2": module.opts} {
		_, _, err := resolveText(t, text, opts, report.Discard)
		if fault.ClassOf(err) != fault.Host || !strings.Contains(err.Error(), "go1.99.") || !strings.Contains(err.Error(), "install go1.99.") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// A module proxy that cuts connections is named, and hurts nothing: the same
// module cache serves when it is well again.
func TestModuleProxyCuts(t *testing.T) {
	s := proxySource(t, "v1.37.2", kubetest.Release{Version: "v1.37.2", Time: fixtureDate, GoVersion: hostGo(t)})
	files := http.FileServer(http.Dir(strings.TrimPrefix(s.opts.Env[0], "GOPROXY=file://")))
	var bad atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, bad.Load().(string)) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write([]byte("PK\x03\x04"))
			panic(http.ErrAbortHandler)
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	env := append(slices.Clone(s.opts.Env), "GOPROXY="+server.URL)
	for _, name := range []string{"kubernetes/@v/v1.37.2.zip", "kubernetes/@v/v1.37.2.mod", "client-go/@v/v0.37.2.zip"} {
		bad.Store(name)
		s.opts.Env = append(slices.Clone(env), "GOMODCACHE="+t.TempDir())
		_, err := s.Resolve(t.Context(), report.Discard)
		if fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), server.URL) || !strings.Contains(err.Error(), "v1.37.2") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	bad.Store("nothing")
	ref, err := s.Resolve(t.Context(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard); err != nil {
		t.Error(err)
	}
}

package kube

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// asked returns the URL of a server that has nothing, and how often it was asked.
func asked(t *testing.T) (string, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		http.Error(w, "no", http.StatusNotFound)
	}))
	t.Cleanup(s.Close)
	return s.URL, &n
}

func TestOfflineAsksNobody(t *testing.T) {
	needTools(t, "git", "go")
	server, n := asked(t)
	t.Setenv("GOPROXY", server)
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	for text, what := range map[string]string{
		"ci/latest":                       server + "/ci/latest.txt",
		"release/v1.37.2":                 server,
		"git:" + server + "/k.git@master": server + "/k.git",
		"master":                          server + "/kubernetes.git",
		"v1.37.2":                         "k8s.io/kubernetes@v1.37.2",
	} {
		src, err := Parse(text, Options{CacheDir: t.TempDir(), BaseURL: server, GitURL: server + "/kubernetes.git", Offline: true})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		_, err = src.Resolve(t.Context(), report.Discard)
		if fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), "--offline") || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, want %s to be named", text, err, what)
		}
	}
	if n.Load() != 0 {
		t.Errorf("the network was used %d times", n.Load())
	}
}

func TestOfflineTakesWhatIsHere(t *testing.T) {
	dir, commits := gitRepo(t)
	remote := overHTTP(t, filepath.Dir(dir)) + "/kubernetes"
	opts := Options{CacheDir: t.TempDir()}
	resolve := func(offline bool) (Ref, error) {
		opts.Offline = offline
		src, err := Parse("git:"+remote+"@"+commits["master"], opts)
		if err != nil {
			t.Fatal(err)
		}
		return src.Resolve(t.Context(), report.Discard)
	}
	if _, err := resolve(true); fault.ClassOf(err) != fault.Network {
		t.Errorf("an empty mirror: %v", err)
	}
	want, err := resolve(false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := resolve(true); err != nil || got.Commit != want.Commit || got.Inputs[gosource.TreeInput] != want.Inputs[gosource.TreeInput] {
		t.Errorf("a commit that is here: %+v, %v", got, err)
	}
}

// A published version that was resolved and downloaded once needs no network
// again; a marker does, since it moves.
func TestOfflineTakesAPublishedVersion(t *testing.T) {
	b, opts := bucketServer(t)
	src, want, err := resolveText(t, "release/v1.37.2", opts, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(t.Context(), want, t.TempDir(), t.TempDir(), report.Discard); err != nil {
		t.Fatal(err)
	}
	before := b.Asked("release/v1.37.2" + bin + "kubelet.exe.sha256")
	opts.Offline = true
	src, got, err := resolveText(t, "release/v1.37.2", opts, report.Discard)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	bits, err := src.Fetch(t.Context(), got, t.TempDir(), t.TempDir(), report.Discard)
	if err != nil || len(bits.Binaries) != 4 {
		t.Errorf("got %+v, %v", bits, err)
	}
	if n := b.Asked("release/v1.37.2" + bin + "kubelet.exe.sha256"); n != before {
		t.Errorf("the server was asked %d times, before %d", n, before)
	}
	for _, text := range []string{"stable", "ci/latest"} {
		if _, _, err := resolveText(t, text, opts, report.Discard); fault.ClassOf(err) != fault.Network {
			t.Errorf("%s: got %v", text, err)
		}
	}
	opts.Linux = true // other files
	if _, _, err := resolveText(t, "release/v1.37.2", opts, report.Discard); fault.ClassOf(err) != fault.Network {
		t.Errorf("with --linux: got %v", err)
	}
}

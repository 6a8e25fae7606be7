package builder

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/disk"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor/fake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/media"
	"github.com/wbox-dev/wbox/builder/spec"
)

// medium writes an ISO of Server 2022 that had rested for an hour.
func medium(t testing.TB, level int) (path, digest string) {
	t.Helper()
	editions := isotest.Editions("2022")
	for i := range editions {
		editions[i].SPBuild = level
	}
	path = isotest.FakeWindowsISO(t, t.TempDir(), editions, nil)
	rested(t, path)
	digest, _, err := cas.DigestFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return path, digest
}

func rested(t testing.TB, path string) {
	t.Helper()
	at := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestLocateMedia(t *testing.T) {
	b := newTestBuilder(t, t.TempDir(), plenty)
	lib, err := media.New(b.store, media.Options{})
	if err != nil {
		t.Fatal(err)
	}
	older, olderDigest := medium(t, 1)
	newer, newerDigest := medium(t, 2)
	for _, p := range []string{older, newer} {
		if _, err := lib.Add(t.Context(), p, ""); err != nil {
			t.Fatal(err)
		}
	}
	locate := func(isoFlag string, opts ResolveOptions, pinned *lock.Lock) (*Resolved, *media.Pending, error) {
		s := &spec.Spec{ISO: isoFlag}
		s.Default()
		r := &Resolved{Spec: s}
		p, err := b.locateMedia(t.Context(), r, opts, pinned)
		return r, p, err
	}
	lockOf := func(digest string) *lock.Lock {
		return &lock.Lock{Inputs: map[string]lock.Input{"iso": {Digest: digest}}}
	}
	for _, c := range []struct {
		name, iso, want string
		frozen          bool
	}{
		{"the newest", "", newerDigest, false},
		{"what a lock pins, where nothing may change", "", olderDigest, true},
		{"the file", older, olderDigest, false},
		{"the file, whatever the lock pins", newer, newerDigest, true},
	} {
		r, p, err := locate(c.iso, ResolveOptions{Pins: Pins{Frozen: c.frozen}}, lockOf(olderDigest))
		if err != nil || p != nil || r.ISODigest != c.want || r.Edition.Build != 20348 || r.Edition.Kind() != iso.Core || r.isoSource == "" {
			t.Errorf("%s: %+v %+v %v", c.name, r.ISODigest, p, err)
		}
	}
	if _, _, err := locate("https://example.org/x.iso", ResolveOptions{PlanOnly: true}, nil); fault.ClassOf(err) != fault.Input {
		t.Errorf("a plan that needs a download: %v", err)
	}
	if _, p, err := locate("https://example.org/x.iso", ResolveOptions{PlanOnly: true, Download: true}, nil); err != nil || p == nil {
		t.Errorf("a lock that needs a download: %v %v", p, err)
	}
}

// TestNothingIsDownloadedForNothing asks for a build that can't start.
func TestNothingIsDownloadedForNothing(t *testing.T) {
	path, _ := medium(t, 1)
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.ServeFile(w, r, path)
	}))
	defer s.Close()
	b := newTestBuilder(t, t.TempDir(), plenty)
	for bad, want := range map[string]int{"v0.nonsense": 0, "": 0} {
		_, err := b.Resolve(t.Context(), &spec.Spec{K8s: bad, ISO: s.URL + "/w.iso"}, ResolveOptions{PlanOnly: true, Download: true})
		if err == nil || requests != want {
			t.Errorf("--k8s %q: %v, %d requests", bad, err, requests)
		}
	}
}

// BenchmarkUpToDate is a build that has nothing to do, with an ISO as large as
// Microsoft's largest (8 152 356 864 bytes, sparse), from the flags to the
// finding. The first time, when the ISO has to be hashed, is "first-s".
func BenchmarkUpToDate(b *testing.B) {
	if _, err := disk.Find(""); err != nil {
		b.Skip(err)
	}
	exes := filepath.Join(b.TempDir(), "exes")
	if err := kubetest.BuildFixture(b.Context(), exes, "v1.37.2", ""); err != nil {
		b.Fatal(err)
	}
	path, _ := medium(b, 1)
	if err := os.Truncate(path, 8_152_356_864); err != nil {
		b.Fatal(err)
	}
	rested(b, path)
	<-time.After(200 * time.Millisecond) // its inode was changed just now
	build, err := New(Options{Store: b.TempDir(), Driver: fake.New(nil)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(build.store.Release)
	resolve := func() *Resolved {
		s := &spec.Spec{K8s: exes, K8sVersion: "v1.37.2", CNI: "calico", ISO: path, Output: filepath.Join(b.TempDir(), "out"), AllowEmulation: true}
		r, err := build.Resolve(b.Context(), s, ResolveOptions{Kube: kube.Options{CacheDir: b.TempDir()}})
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	started := time.Now()
	r := resolve()
	first := time.Since(started)
	if !strings.HasPrefix(r.ISODigest, "sha256:") {
		b.Fatal(r.ISODigest)
	}
	warm(b, build, r, 1000, time.Second)
	for b.Loop() {
		built, err := build.Build(b.Context(), resolve())
		if err != nil || !built.UpToDate() {
			b.Fatal(err, "it is not up to date")
		}
	}
	b.ReportMetric(first.Seconds(), "first-s")
}

package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

const (
	ciOld = "v1.38.0-alpha.1.5+0123456789abcd"
	ciNew = "v1.38.0-alpha.1.12+fedcba98765432"
	bin   = "/bin/windows/amd64/"
)

// publishOnce returns a bucket with the programs, which take seconds to link: all
// tests of this process have copies of it.
func publishOnce(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(os.Getenv(sharedEnv), "bucket")
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	b, err := kubetest.NewBucket(dir + ".new")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][2]string{{release, "v1.37.2"}, {ci, ciOld}, {ci, ciNew}} {
		if err := b.Publish(t.Context(), v[0], v[1], false); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(dir+".new", dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// bucketServer serves a release and two CI builds from a loopback bucket.
func bucketServer(t *testing.T) (*kubetest.Bucket, Options) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(publishOnce(t))); err != nil {
		t.Fatal(err)
	}
	b, err := kubetest.NewBucket(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"release/stable.txt": "v1.37.2", "release/stable-1.37.txt": "v1.37.2\n", "ci/latest.txt": ciNew, "ci/latest-1.38.txt": ciNew} {
		if err := b.Mark(name, body, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return b, Options{BaseURL: server.URL, CacheDir: t.TempDir(), RetryPause: time.Millisecond}
}

func resolveText(t *testing.T, text string, opts Options, sink report.Sink) (Source, Ref, error) {
	t.Helper()
	src, err := Parse(text, opts)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := src.Resolve(t.Context(), sink)
	return src, ref, err
}

func TestBucket(t *testing.T) {
	b, opts := bucketServer(t)
	for text, version := range map[string]string{"stable": "v1.37.2", "1.37": "v1.37.2", "release/v1.37.2": "v1.37.2", "ci/latest": ciNew, "ci/latest-1.38": ciNew, "ci/" + ciOld: ciOld} {
		rec := &recorder{}
		src, ref, err := resolveText(t, text, opts, rec)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if ref.Version != version || len(ref.Inputs) != 8 || len(rec.messages(report.Warning)) != 0 {
			t.Errorf("%s: got %+v and %v", text, ref, rec.events)
		}
		dir := t.TempDir()
		bits, err := src.Fetch(t.Context(), ref, dir, t.TempDir(), rec)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i, bin := range bits.Binaries {
			if bin.Name != Programs()[i] || ref.Inputs[bin.File] != "sha256:"+bin.SHA256 || !strings.HasPrefix(bin.From, opts.BaseURL) {
				t.Errorf("%s: got %+v", text, bin)
			}
		}
	}
	// What was downloaded once is not downloaded again.
	if n := b.Asked("ci/" + ciNew + bin + "kubelet.exe"); n != 1 {
		t.Errorf("kubelet.exe was downloaded %d times", n)
	}
}

// A marker whose build is not complete is walked back, and said.
func TestBucketStepsBack(t *testing.T) {
	b, opts := bucketServer(t)
	for _, name := range []string{"kubeadm.exe", "kubelet.exe.sha256", "kubelet.exe.sha512"} {
		if err := os.Remove(b.Path("ci/" + ciNew + bin + name)); err != nil {
			t.Fatal(err)
		}
	}
	// The archive has them.
	src, ref, err := resolveText(t, "ci/latest", opts, report.Discard)
	if err != nil || ref.Version != ciNew || ref.Inputs[(Options{}).archiveOf(windows)] == "" || ref.Inputs["kubelet.exe"] != "" || ref.Inputs["kube-proxy.exe"] == "" {
		t.Fatalf("got %+v, %v", ref, err)
	}
	bits, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard)
	if err != nil || len(bits.Binaries) != 4 || !strings.Contains(bits.Binaries[2].From, "kubernetes/node/bin/kubeadm.exe") {
		t.Errorf("got %+v, %v", bits, err)
	}
	// It doesn't.
	if err := os.Remove(b.Path("ci/" + ciNew + "/" + (Options{}).archiveOf(windows))); err != nil {
		t.Fatal(err)
	}
	rec := &recorder{}
	_, ref, err = resolveText(t, "ci/latest", opts, rec)
	warned := strings.Join(rec.messages(report.Warning), "\n")
	if err != nil || ref.Version != ciOld || !strings.Contains(warned, ciNew+", which is not complete (it lacks kubeadm.exe, kubelet.exe): stepping back to "+ciOld) {
		t.Errorf("got %+v, %v, warned of %q", ref, err, warned)
	}
	// Who names a build gets that or nothing.
	_, _, err = resolveText(t, "ci/"+ciNew, opts, report.Discard)
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "it lacks kubeadm.exe, kubelet.exe") || !strings.Contains(err.Error(), ciOld) {
		t.Errorf("got %v", err)
	}
	_, _, err = resolveText(t, "release/v1.37.9", opts, report.Discard)
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "v1.37.9 is not published") || !strings.Contains(err.Error(), "the newest of v1.37 is v1.37.2") {
		t.Errorf("got %v", err)
	}
}

func TestBucketMarkers(t *testing.T) {
	b, opts := bucketServer(t)
	old := time.Now().Add(-100 * 24 * time.Hour)
	for name, tt := range map[string]struct {
		body  string
		class fault.Class
		says  string
	}{
		"page":          {"<!DOCTYPE html><html>log in</html>", fault.Network, "an HTML page"},
		"empty":         {"", fault.Network, "holds no version"},
		"other":         {"banana", fault.Network, `"banana"`},
		"no build":      {"v1.38.0", fault.Network, "no CI build"},
		"another minor": {ciOld, fault.Network, "another minor version"},
	} {
		object, text := "ci/latest.txt", "ci/latest"
		if name == "another minor" {
			object, text = "ci/latest-1.37.txt", "ci/latest-1.37"
		}
		if err := b.Mark(object, tt.body, old); err != nil {
			t.Fatal(err)
		}
		_, _, err := resolveText(t, text, opts, report.Discard)
		if fault.ClassOf(err) != tt.class || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want it to say %q", name, err, tt.says)
		}
	}
	if _, _, err := resolveText(t, "ci/latest-1.99", opts, report.Discard); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("no such marker: got %v", err)
	}
	if err := b.Mark("ci/latest.txt", ciNew, old); err != nil {
		t.Fatal(err)
	}
	rec := &recorder{}
	if _, _, err := resolveText(t, "ci/latest", opts, rec); err != nil || !strings.Contains(strings.Join(rec.messages(report.Warning), ""), "100 days ago") {
		t.Errorf("a stale marker: got %v, %v", err, rec.events)
	}
}

// A server that fails gets asked again; one that lies is found out; nothing of
// either is taken for a program.
func TestBucketFaults(t *testing.T) {
	b, opts := bucketServer(t)
	object := "ci/" + ciNew + bin + "kubelet.exe"
	good, err := os.ReadFile(b.Path(object))
	if err != nil {
		t.Fatal(err)
	}
	status := func(code int, times int) kubetest.Fault {
		return func(w http.ResponseWriter, r *http.Request, n int) bool {
			if r.Method == http.MethodHead || n > times {
				return false
			}
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
			fmt.Fprint(w, "<html>busy</html>")
			return true
		}
	}
	body := func(data []byte) kubetest.Fault {
		return func(w http.ResponseWriter, r *http.Request, _ int) bool {
			if r.Method == http.MethodHead {
				return false
			}
			_, _ = w.Write(data)
			return true
		}
	}
	cut := func(w http.ResponseWriter, r *http.Request, n int) bool {
		if r.Method == http.MethodHead || n > 2 || r.Header.Get("Range") != "" {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(good)))
		w.Header().Set("ETag", `"x"`)
		_, _ = w.Write(good[:len(good)/2])
		panic(http.ErrAbortHandler)
	}
	for name, tt := range map[string]struct {
		object string
		fault  kubetest.Fault
		class  fault.Class
	}{
		"429 once":            {object, status(429, 1), 0},
		"502 with a body":     {object, status(502, 2), 0},
		"cut":                 {object, cut, 0},
		"marker 429":          {"ci/latest.txt", status(429, 2), 0},
		"checksum 503":        {object + ".sha256", status(503, 1), 0},
		"502 for ever":        {object, status(502, 1000), fault.Network},
		"a page":              {object, body([]byte("<!DOCTYPE html><html><title>Log in</title></html>")), fault.Input},
		"other bytes":         {object, body(append(good[:len(good)-1:len(good)-1], good[len(good)-1]^1)), fault.Input},
		"a page for checksum": {object + ".sha256", body([]byte("<html>log in</html>")), fault.Network},
		"no checksum":         {object + ".sha512", body([]byte("none")), fault.Network},
		"redirect loop": {"ci/latest.txt", func(w http.ResponseWriter, r *http.Request, _ int) bool {
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
			return true
		}, fault.Network},
	} {
		t.Run(name, func(t *testing.T) {
			opts.CacheDir = t.TempDir()
			b.Fail(tt.object, tt.fault)
			defer b.Fail(tt.object, nil)
			out := t.TempDir()
			src, ref, err := resolveText(t, "ci/latest", opts, report.Discard)
			var bits Bits
			if err == nil {
				bits, err = src.Fetch(t.Context(), ref, out, t.TempDir(), report.Discard)
			}
			if fault.ClassOf(err) != tt.class {
				t.Fatalf("got %v, want class %d", err, tt.class)
			}
			if err == nil && len(bits.Binaries) != 4 {
				t.Errorf("got %+v", bits)
			}
			if _, serr := os.Stat(filepath.Join(out, "kubelet.exe")); (serr == nil) != (err == nil) {
				t.Errorf("kubelet.exe: %v after %v", serr, err)
			}
		})
	}
}

func TestOlderReleases(t *testing.T) {
	for v, want := range map[string][]string{"v1.37.2": {"v1.37.1", "v1.37.0"}, "v1.38.0-alpha.1": {"v1.38.0-alpha.0"}, "v1.37.0": nil} {
		if got := olderReleases(v); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v", v, got)
		}
	}
}

func FuzzParseListing(f *testing.F) {
	f.Add([]byte("<ListBucketResult><IsTruncated>true</IsTruncated><NextMarker>x</NextMarker><CommonPrefixes><Prefix>ci/" + ciOld + "/</Prefix></CommonPrefixes></ListBucketResult>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		versions, _, err := parseListing(data)
		for _, v := range versions {
			if normal, nerr := normalizeVersion(v, true); err != nil || nerr != nil || normal != v {
				t.Errorf("got the version %q", v)
			}
		}
	})
}

package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/imagestest"
)

var errFull = fmt.Errorf("writing: %w", syscall.ENOSPC)

// failed copies and returns the problem, and checks that the target has no name.
func failed(t *testing.T, c *Client, from, to string, o CopyOptions) *fault.Problem {
	t.Helper()
	_, err := c.Copy(t.Context(), c.Remote(parsed(t, c, from)), parsed(t, c, to), o)
	var p *fault.Problem
	if !errors.As(err, &p) {
		t.Fatalf("no problem: %v", err)
	}
	if p.Why == "" || p.Fix == "" || p.Value == "" {
		t.Errorf("not all is said: %#v", p)
	}
	return p
}

// half answers a request for a blob with its first half and then breaks off.
func half(w http.ResponseWriter, r *http.Request, next http.Handler) {
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func isBlob(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/")
}

func TestWhatBreaksOffIsGoneOnWith(t *testing.T) {
	inner := imagestest.New()
	defer inner.Close()
	a, b := imagestest.InFront(inner.Host), newRegistry(t)
	defer a.Close()
	m := pushed(t, inner, "app:v1", imagestest.Spec{Layers: 2, Size: 64 << 10})
	a.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if !isBlob(r) || r.Header.Get("Range") != "" {
			return false
		}
		half(w, r, inner)
		return true
	})
	copied(t, newTestClient(), a.Host+"/app:v1", b.Host+"/app:v1", CopyOptions{}, m.Digest)
	if n := inner.Count("GET", "/blobs/"); n < 6 {
		t.Errorf("%d requests for 3 blobs that all broke off", n)
	}
}

func TestLies(t *testing.T) {
	for _, c := range []struct {
		name  string
		class fault.Class
		why   string
		lie   func(inner *imagestest.Registry) imagestest.Fault
	}{
		{"a truncated blob", fault.Input, "ends after", func(*imagestest.Registry) imagestest.Fault {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if isBlob(r) {
					w.WriteHeader(http.StatusOK)
					if r.Header.Get("Range") == "" {
						fmt.Fprint(w, "short")
					}
				}
				return isBlob(r)
			}
		}},
		{"another blob", fault.Input, "digest", func(inner *imagestest.Registry) imagestest.Fault {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !isBlob(r) {
					return false
				}
				rec := httptest.NewRecorder()
				inner.ServeHTTP(rec, r)
				data := rec.Body.Bytes()
				data[len(data)/2] ^= 1
				_, _ = w.Write(data)
				return true
			}
		}},
		{"too long a blob", fault.Input, "another than its digest says", func(*imagestest.Registry) imagestest.Fault {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if isBlob(r) {
					_, _ = io.Copy(w, io.LimitReader(zeros{}, 1<<20))
				}
				return isBlob(r)
			}
		}},
		{"another manifest", fault.Input, "digest", func(*imagestest.Registry) imagestest.Fault {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/manifests/sha256:") {
					return false
				}
				w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
				fmt.Fprint(w, `{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":{"digest":"sha256:`+strings.Repeat("a", 64)+`"},"layers":[]}`)
				return true
			}
		}},
		{"a page of a login form", fault.Input, "no manifest", func(*imagestest.Registry) imagestest.Fault {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "/manifests/v1") && r.Method == http.MethodGet {
					fmt.Fprint(w, "<html>log in</html>")
					return true
				}
				return false
			}
		}},
		{"an index whose child is missing", fault.Input, "not there", func(*imagestest.Registry) imagestest.Fault {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "/manifests/sha256:") {
					imagestest.Refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN")
					return true
				}
				return false
			}
		}},
		{"a blob that is missing", fault.Input, "not complete", func(*imagestest.Registry) imagestest.Fault {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if isBlob(r) {
					imagestest.Refuse(w, http.StatusNotFound, "BLOB_UNKNOWN")
				}
				return isBlob(r)
			}
		}},
		{"a broken server", fault.Network, "does not work", func(*imagestest.Registry) imagestest.Fault {
			return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner, b := newRegistry(t), newRegistry(t)
			a := imagestest.InFront(inner.Host)
			defer a.Close()
			pushed(t, inner, "app:v1", imagestest.Spec{Layers: 1, Size: 10 << 10, Platforms: []v1.Platform{imagestest.Linux("amd64"), imagestest.Linux("arm64")}})
			a.Fail(c.lie(inner))
			cl := newTestClient()
			p := failed(t, cl, a.Host+"/app:v1", b.Host+"/app:v1", CopyOptions{})
			if p.Class != c.class || !strings.Contains(p.Error(), c.why) {
				t.Errorf("class %d: %v, want %d and %q", p.Class, p, c.class, c.why)
			}
			if _, found, err := cl.Head(t.Context(), parsed(t, cl, b.Host+"/app:v1")); found || err != nil {
				t.Errorf("a name is there: %v, %v", found, err)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestARegistryThatDoesNotMount(t *testing.T) {
	r := newRegistry(t)
	m := pushed(t, r, "a/app:v1", five(2))
	r.Fail(func(_ http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodPost {
			req.URL.RawQuery = ""
		}
		return false
	})
	got := copied(t, newTestClient(), r.Host+"/a/app:v1", r.Host+"/b/app:v1", CopyOptions{}, m.Digest)
	if got.Uploaded != m.Blobs || got.Mounted != 0 {
		t.Errorf("%+v", got)
	}
}

func TestARegistryThatRewrites(t *testing.T) {
	a, b := newRegistry(t), newRegistry(t)
	pushed(t, a, "app:v1", imagestest.Spec{Layers: 1, Size: 100})
	var heads atomic.Int32
	b.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead || !strings.HasSuffix(r.URL.Path, "/manifests/v1") || heads.Add(1) < 2 {
			return false
		}
		w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("b", 64))
		w.WriteHeader(http.StatusOK)
		return true
	})
	if p := failed(t, newTestClient(), a.Host+"/app:v1", b.Host+"/app:v1", CopyOptions{}); p.Class != fault.Failed || !strings.Contains(p.Why, "another digest") {
		t.Errorf("%v", p)
	}
}

// busy registries: how long they wish to be waited for, in each form.
func TestRetryAfter(t *testing.T) {
	for name, header := range map[string]func() string{
		"seconds": func() string { return "1" },
		"a date":  func() string { return time.Now().Add(1200 * time.Millisecond).UTC().Format(http.TimeFormat) },
		"nothing": func() string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := newRegistry(t), newRegistry(t)
			m := pushed(t, a, "app:v1", five(3))
			var n atomic.Int32
			var mu sync.Mutex
			var slammed, until time.Time
			early := 0
			slam := func(w http.ResponseWriter, _ *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				// What was on its way when the registry became busy still comes.
				if now := time.Now(); now.Before(until) && now.Sub(slammed) > 300*time.Millisecond {
					early++
				}
				if k := n.Add(1); k != 3 && k != 20 {
					return false
				}
				h := header()
				w.Header().Set("Retry-After", h)
				if wait, ok := retryAfter(h, time.Now()); ok {
					slammed = time.Now()
					until = slammed.Add(wait - 50*time.Millisecond)
				}
				imagestest.Refuse(w, http.StatusTooManyRequests, "TOOMANYREQUESTS")
				return true
			}
			b.Fail(slam)
			copied(t, newTestClient(), a.Host+"/app:v1", b.Host+"/app:v1", CopyOptions{}, m.Digest)
			if early > 0 {
				t.Errorf("%d requests came before the time", early)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	a, b := newRegistry(t), newRegistry(t)
	pushed(t, a, "app:v1", imagestest.Spec{Layers: 1, Size: 100})
	b.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "120")
		imagestest.Refuse(w, http.StatusTooManyRequests, "TOOMANYREQUESTS")
		return true
	})
	start := time.Now()
	p := failed(t, newTestClient(func(o *ClientOptions) { o.Budget = time.Second }), a.Host+"/app:v1", b.Host+"/app:v1", CopyOptions{})
	if p.Class != fault.Network || !strings.Contains(p.Error(), "asks to wait 2m0s") || time.Since(start) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(start), p)
	}
}

// TestStoppedAnywhere stops a copy at every request: the name is never there
// unless all that it leads to is, and the next copy completes it.
func TestStoppedAnywhere(t *testing.T) {
	spec := imagestest.Spec{Layers: 2, Size: 500, Platforms: []v1.Platform{imagestest.Linux("amd64"), imagestest.Windows("10.0.20348.1")}}
	for k := 1; ; k++ {
		a, b := newRegistry(t), newRegistry(t)
		m := pushed(t, a, "app:v1", spec)
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int32
		stop := func(http.ResponseWriter, *http.Request) bool {
			if int(n.Add(1)) == k {
				cancel()
			}
			return false
		}
		a.Fail(stop)
		b.Fail(stop)
		c := newTestClient()
		_, err := c.Copy(ctx, c.Remote(parsed(t, c, a.Host+"/app:v1")), parsed(t, c, b.Host+"/app:v1"), CopyOptions{})
		cancel()
		if err != nil && fault.ClassOf(err) != fault.Interrupted {
			t.Errorf("stopped at request %d: %v", k, err)
		}
		a.Fail(nil)
		b.Fail(nil)
		if d, found, err := c.Head(t.Context(), parsed(t, c, b.Host+"/app:v1")); err != nil || found && d != m.Digest {
			t.Fatalf("stopped at request %d: %v %v", k, d, err)
		} else if found {
			complete(t, c, b.Host+"/app")
		}
		copied(t, newTestClient(), a.Host+"/app:v1", b.Host+"/app:v1", CopyOptions{}, m.Digest)
		complete(t, newTestClient(), b.Host+"/app")
		if err == nil {
			t.Logf("%d requests", k-1)
			if k < 20 {
				t.Error("it was never stopped")
			}
			return
		}
	}
}

// complete reads all of an image.
func complete(t *testing.T, c *Client, repo string) {
	t.Helper()
	src := c.Remote(parsed(t, c, repo+":v1"))
	root, err := src.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range root.Children {
		m, err := src.Manifest(t.Context(), child)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range m.Blobs {
			rc, err := src.Blob(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, rc); err != nil {
				t.Fatal(err)
			}
			rc.Close()
		}
	}
}

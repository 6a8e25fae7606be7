package images

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/images/imagestest"
)

// five is a shape of Kubernetes' images: three Linux and two Windows platforms.
func five(layers int) imagestest.Spec {
	return imagestest.Spec{Layers: layers, Size: 1000, Seed: 7, Platforms: []v1.Platform{imagestest.Linux("amd64"), imagestest.Linux("arm64"), imagestest.Linux("s390x"),
		imagestest.Windows("10.0.20348.2700"), imagestest.Windows("10.0.26100.1000")}}
}

func newRegistry(t *testing.T) *imagestest.Registry {
	t.Helper()
	r := imagestest.New()
	t.Cleanup(r.Close)
	return r
}

func newTestClient(change ...func(*ClientOptions)) *Client {
	o := ClientOptions{Pause: time.Millisecond, Sink: report.Discard}
	for _, c := range change {
		c(&o)
	}
	return NewClient(o)
}

func pushed(t *testing.T, r *imagestest.Registry, path string, s imagestest.Spec) imagestest.Made {
	t.Helper()
	m, err := r.Push(t.Context(), path, s)
	if err != nil {
		t.Fatal(err)
	}
	r.Reset()
	return m
}

func parsed(t *testing.T, c *Client, text string) Reference {
	t.Helper()
	ref, err := c.Parse("test", text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// copied copies and checks what the target stands for.
func copied(t *testing.T, c *Client, from, to string, o CopyOptions, want v1.Hash) Copied {
	t.Helper()
	got, err := c.Copy(t.Context(), c.Remote(parsed(t, c, from)), parsed(t, c, to), o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != want {
		t.Fatalf("copied %s, want %s", got.Digest, want)
	}
	return got
}

// The figures that users were promised: requests, and bytes of layers.
func TestRequestsOfACopy(t *testing.T) {
	for _, c := range []struct {
		name string
		spec imagestest.Spec
	}{
		{"one platform", imagestest.Spec{Layers: 6, Size: 1000}},
		{"five platforms", five(6)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegistry(t)
			m := pushed(t, r, "a/app:v1", c.spec)
			got := copied(t, newTestClient(), r.Host+"/a/app:v1", r.Host+"/b/app:v2", CopyOptions{}, m.Digest)
			n := len(r.Requests())
			bytes, most := r.Received()
			t.Logf("%d blobs, %d manifests: %d requests, up to %d at once, %d bytes", m.Blobs, m.Manifests, n, most, bytes)
			// Every manifest is read and written, every blob mounted; before and after, the name is asked for.
			if want := m.Blobs + 2*m.Manifests + 2; n > want {
				t.Errorf("%d requests, want no more than %d:\n%s", n, want, strings.Join(r.Requests(), "\n"))
			}
			if got.Mounted != m.Blobs || got.Uploaded != 0 || most > DefaultJobs || bytes > 20000 {
				t.Errorf("%+v, %d bytes, %d at once", got, bytes, most)
			}
			r.Reset()
			if again := copied(t, newTestClient(), r.Host+"/a/app:v1", r.Host+"/b/app:v2", CopyOptions{}, m.Digest); !again.Existing || len(r.Requests()) > 2 {
				t.Errorf("the second copy: %+v, %v", again, r.Requests())
			}
			r.Reset()
			copied(t, newTestClient(), r.Host+"/a/app:v1", r.Host+"/a/app:new", CopyOptions{}, m.Digest)
			if n := len(r.Requests()); n > 7 {
				t.Errorf("a tag took %d requests: %v", n, r.Requests())
			}
		})
	}
}

func TestCopyToAnotherRegistry(t *testing.T) {
	a, b := newRegistry(t), newRegistry(t)
	m := pushed(t, a, "app:v1", five(3))
	got := copied(t, newTestClient(), a.Host+"/app:v1", b.Host+"/x/y/app:v1", CopyOptions{}, m.Digest)
	if got.Uploaded != m.Blobs || got.Manifests != m.Manifests {
		t.Errorf("%+v of %+v", got, m)
	}
}

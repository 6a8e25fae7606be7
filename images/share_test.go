package images

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/images/imagestest"
)

func TestBlobsAreFetchedOnce(t *testing.T) {
	a, b, d := newRegistry(t), newRegistry(t), newRegistry(t)
	m := pushed(t, a, "app:v1", five(2))
	cache := newMemCache()
	with := func(o *ClientOptions) { o.Cache = cache }
	copied(t, newTestClient(with), a.Host+"/app:v1", b.Host+"/app:v1", CopyOptions{}, m.Digest)
	a.Reset()
	copied(t, newTestClient(with), a.Host+"/app:v1", d.Host+"/app:v1", CopyOptions{}, m.Digest)
	if got := a.Requests(); len(got) != 1 {
		t.Errorf("with everything in the cache the source is asked %v", got)
	}
	a.Reset() // and a copy within a registry that was seen before: every manifest is known
	copied(t, newTestClient(with), a.Host+"/app:v1", a.Host+"/else:v1", CopyOptions{}, m.Digest)
	if n := len(a.Requests()); n > m.Blobs+m.Manifests+4 {
		t.Errorf("%d requests for %d blobs and %d manifests", n, m.Blobs, m.Manifests)
	}
	for k, v := range cache.data { // what is damaged is fetched anew
		if len(v) > 0 {
			v[0] ^= 1
		}
		cache.data[k] = v
	}
	copied(t, newTestClient(with), a.Host+"/app:v1", d.Host+"/again/app:v1", CopyOptions{}, m.Digest)
	fresh := newRegistry(t)
	copied(t, newTestClient(with), a.Host+"/app:v1", fresh.Host+"/app:v1", CopyOptions{}, m.Digest)
}

func TestAFullDiskStopsNoCopy(t *testing.T) {
	a, b := newRegistry(t), newRegistry(t)
	m := pushed(t, a, "app:v1", five(2))
	var mu sync.Mutex
	warned := 0
	c := newTestClient(func(o *ClientOptions) {
		o.Cache = &memCache{data: map[string][]byte{}, full: true}
		o.Sink = report.SinkFunc(func(e report.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == report.Warning && strings.Contains(e.Message, "no space left") {
				warned++
			}
		})
	})
	copied(t, c, a.Host+"/app:v1", b.Host+"/app:v1", CopyOptions{}, m.Digest)
	if warned != 1 {
		t.Errorf("warned %d times", warned)
	}
}

func TestWhatImagesShareIsSentOnce(t *testing.T) {
	a, b := newRegistry(t), newRegistry(t)
	m := pushed(t, a, "one:v1", five(2))
	pushed(t, a, "two:v1", five(2)) // the same content
	c := newTestClient()
	list := []Image{{Source: a.Host + "/one:v1", Paths: []string{"one:v1"}}, {Source: a.Host + "/two:v1", Paths: []string{"two:v1", "three:v1"}}}
	got, err := c.Mirror(t.Context(), list, MirrorOptions{To: b.Host + "/x"})
	if err != nil {
		t.Fatal(err)
	}
	sent, mounted := 0, 0
	for _, g := range got {
		sent += g.Uploaded
		mounted += g.Mounted
	}
	if sent != m.Blobs || mounted != 2*m.Blobs {
		t.Errorf("%d sent, %d mounted of %d: %+v", sent, mounted, m.Blobs, got)
	}
}

func TestForeignLayers(t *testing.T) {
	a := newRegistry(t)
	s := five(1)
	s.Foreign = "https://mcr.example.com/layer"
	m := pushed(t, a, "app:v1", s)
	for _, c := range []struct {
		policy  Foreign
		foreign int
	}{{KeepURL, 2}, {"", 2}, {CopyForeign, 0}} {
		b := newRegistry(t)
		got := copied(t, newTestClient(), a.Host+"/app:v1", b.Host+"/app:v1", CopyOptions{Foreign: c.policy}, m.Digest)
		if got.Foreign != c.foreign || got.Uploaded != m.Blobs+2-c.foreign {
			t.Errorf("%q: %+v", c.policy, got)
		}
	}
	if p := failed(t, newTestClient(), a.Host+"/app:v1", newRegistry(t).Host+"/app:v1", CopyOptions{Foreign: RefuseForeign}); p.Class != fault.Input || !strings.Contains(p.Why, "may not be distributed") {
		t.Errorf("%v", p)
	}
}

// A registry that is no longer for everybody is as good as gone, one that is
// broken is not.
func TestInstead(t *testing.T) {
	for status, used := range map[int]bool{http.StatusForbidden: true, http.StatusNotFound: true, http.StatusBadGateway: false} {
		a, b := newRegistry(t), newRegistry(t)
		a.Fail(func(w http.ResponseWriter, _ *http.Request) bool { imagestest.Refuse(w, status, "DENIED"); return true })
		other, err := imagestest.Make(imagestest.Spec{Layers: 1, Size: 100})
		if err != nil {
			t.Fatal(err)
		}
		o := MirrorOptions{To: b.Host, Instead: func(context.Context, Image) (Source, error) { return Built(other.Image, "an archive"), nil }}
		got, err := newTestClient().Mirror(t.Context(), []Image{{Source: a.Host + "/app:v1", Paths: []string{"app:v1"}}}, o)
		if used != (err == nil) || used && (len(got) != 1 || got[0].Digest != other.Digest.String()) {
			t.Errorf("status %d: %+v, %v", status, got, err)
		}
	}
}

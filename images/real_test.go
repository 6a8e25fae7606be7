package images

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/crypto/bcrypt"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/imagestest"
)

// dockerRegistry starts docker-registry with a counting registry in front of it.
func dockerRegistry(t *testing.T, htpasswd string) (front *imagestest.Registry, direct string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts docker-registry")
	}
	if !imagestest.HasDocker() {
		t.Skip("docker-registry is not installed (apt-get install docker-registry)")
	}
	d, err := imagestest.StartDocker(context.WithoutCancel(t.Context()), t.TempDir(), htpasswd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	f := imagestest.InFront(d.Host)
	t.Cleanup(f.Close)
	return f, d.Host
}

// skopeo runs skopeo.
func skopeo(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skip("skopeo is not installed (apt-get install skopeo)")
	}
	out, err := exec.CommandContext(t.Context(), "skopeo", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("skopeo %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// skopeoDigest is the digest that skopeo sees of what a name stands for.
func skopeoDigest(t *testing.T, name string) string {
	t.Helper()
	raw := skopeo(t, "inspect", "--raw", "--tls-verify=false", "docker://"+name)
	h, _, err := v1.SHA256(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

// clusterSpec is an image of a version set: four Linux platforms; pause has two
// of Windows as well.
func clusterSpec(component string, seed uint64) imagestest.Spec {
	s := imagestest.Spec{Layers: 3, Size: 50_000, Seed: seed}
	for _, arch := range []string{"amd64", "arm64", "ppc64le", "s390x"} {
		s.Platforms = append(s.Platforms, imagestest.Linux(arch))
	}
	if component == "pause" {
		s.Platforms = append(s.Platforms, imagestest.Windows("10.0.20348.2700"), imagestest.Windows("10.0.26100.1000"))
	}
	return s
}

// publish puts a whole version set into a registry as registry.k8s.io has it.
func publish(t *testing.T, r *imagestest.Registry, list []Image) map[string]imagestest.Made {
	t.Helper()
	made := map[string]imagestest.Made{}
	for i, img := range list {
		made[img.Component] = pushed(t, r, pathOf(img.Source), clusterSpec(img.Component, uint64(i)))
	}
	return made
}

// release is a cluster of a release whose images come from one registry.
func release(host string) Cluster {
	return Cluster{Version: "v1.37.2", Published: Released, Etcd: "3.7.0-0", CoreDNS: "v1.14.6", Pause: "3.10.2", TagsFrom: "a test", Bases: Bases{Release: host}}
}

func TestMirrorOfAWholeVersionBetweenRealRegistries(t *testing.T) {
	a, _ := dockerRegistry(t, "")
	b, direct := dockerRegistry(t, "")
	list, err := List(release(a.Host))
	if err != nil {
		t.Fatal(err)
	}
	made := publish(t, a, list)
	a.Reset()
	o := MirrorOptions{To: b.Host + "/k8s"}
	got, err := newTestClient().Mirror(t.Context(), list, o)
	if err != nil {
		t.Fatal(err)
	}
	bytes, most := b.Received()
	t.Logf("%d names: %d requests to the source, %d to the mirror (up to %d at once), %d bytes", len(got), len(a.Requests()), len(b.Requests()), most, bytes)
	if len(got) != 8 { // seven images, one under two names
		t.Fatalf("%d names: %+v", len(got), got)
	}
	for _, m := range got {
		want := made[m.Component].Digest.String()
		name := strings.Replace(m.To, b.Host, direct, 1)
		if m.Digest != want || m.Source != want {
			t.Errorf("%s has the digest %s, want %s", m.To, m.Digest, want)
		}
		if seen := skopeoDigest(t, name); seen != want {
			t.Errorf("skopeo sees %s of %s, want %s", seen, name, want)
		}
	}
	raw := skopeo(t, "inspect", "--raw", "--tls-verify=false", "docker://"+direct+"/k8s/pause:3.10.2")
	for _, v := range []string{"10.0.20348.2700", "10.0.26100.1000"} {
		if !strings.Contains(raw, v) {
			t.Errorf("the mirrored index lacks os.version %s: %s", v, raw)
		}
	}
	a.Reset()
	b.Reset()
	if _, err := newTestClient().Mirror(t.Context(), list, o); err != nil {
		t.Fatal(err)
	}
	if n := len(a.Requests()) + len(b.Requests()); n > 2*len(got) {
		t.Errorf("a mirror that is up to date took %d requests for %d names", n, len(got))
	}
}

// The promised figures, with a registry that knows blobs by repository.
func TestRequestsToARealRegistry(t *testing.T) {
	r, direct := dockerRegistry(t, "")
	m := pushed(t, r, "a/app:v1", five(6))
	got := copied(t, newTestClient(), r.Host+"/a/app:v1", r.Host+"/b/app:v1", CopyOptions{}, m.Digest)
	n := len(r.Requests())
	bytes, most := r.Received()
	t.Logf("copy of %d blobs in %d manifests: %d requests, up to %d at once, %d bytes, %d mounted", m.Blobs, m.Manifests, n, most, bytes, got.Mounted)
	if n > m.Blobs+2*m.Manifests+2 || got.Mounted != m.Blobs {
		t.Errorf("%d requests, %+v", n, got)
	}
	if seen := skopeoDigest(t, direct+"/b/app:v1"); seen != m.Digest.String() {
		t.Errorf("skopeo sees %s, want %s", seen, m.Digest)
	}
	r.Reset()
	copied(t, newTestClient(), r.Host+"/a/app:v1", r.Host+"/a/app:v2", CopyOptions{}, m.Digest)
	t.Logf("tag in the same repository: %d requests", len(r.Requests()))
	if len(r.Requests()) > 7 {
		t.Errorf("%v", r.Requests())
	}
	r.Reset()
	copied(t, newTestClient(), r.Host+"/a/app:v1", r.Host+"/b/app:v1", CopyOptions{}, m.Digest)
	if len(r.Requests()) > 2 {
		t.Errorf("nothing to do took %v", r.Requests())
	}
}

// A registry of Docker's own that wants a login: none, a wrong one, the right one.
func TestARealRegistryThatWantsALogin(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	hash, err := bcrypt.GenerateFromPassword([]byte("secret-word"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := dockerRegistry(t, "")
	b, direct := dockerRegistry(t, "me:"+string(hash)+"\n")
	m := pushed(t, a, "app:v1", five(2))
	p := failed(t, newTestClient(), a.Host+"/app:v1", b.Host+"/x/app:v1", CopyOptions{})
	if p.Class != fault.Input || !strings.Contains(p.Fix, "docker login "+b.Host) {
		t.Errorf("%v", p)
	}
	wrong := func(o *ClientOptions) {
		o.Keychain = DefaultKeychain(`{"auths":{"` + b.Host + `":{"username":"me","password":"guessed-word"}}}`)
	}
	if p := failed(t, newTestClient(wrong), a.Host+"/app:v1", b.Host+"/x/app:v1", CopyOptions{}); p.Class != fault.Input || strings.Contains(p.Error(), "guessed-word") {
		t.Errorf("%v", p)
	}
	b.Reset()
	got := copied(t, newTestClient(withLogin(b.Host)), a.Host+"/app:v1", b.Host+"/x/app:v1", CopyOptions{}, m.Digest)
	copied(t, newTestClient(withLogin(b.Host)), b.Host+"/x/app:v1", b.Host+"/y/app:v1", CopyOptions{}, m.Digest)
	raw := skopeo(t, "inspect", "--raw", "--tls-verify=false", "--creds", "me:secret-word", "docker://"+direct+"/y/app:v1")
	if h, _, err := v1.SHA256(strings.NewReader(raw)); err != nil || h != m.Digest || got.Uploaded != m.Blobs {
		t.Errorf("%v, %v, %+v", h, err, got)
	}
}

// A registry that lies: it is slow, now and then busy, and mounts nothing.
func TestARealRegistryBehindALyingProxy(t *testing.T) {
	a, _ := dockerRegistry(t, "")
	b, direct := dockerRegistry(t, "")
	m := pushed(t, a, "app:v1", five(3))
	var n atomic.Int32
	b.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
		}
		if n.Add(1)%17 == 0 {
			w.Header().Set("Retry-After", "0")
			imagestest.Refuse(w, http.StatusTooManyRequests, "TOOMANYREQUESTS")
			return true
		}
		q := r.URL.Query()
		q.Del("mount")
		q.Del("from")
		r.URL.RawQuery = q.Encode()
		return false
	})
	copied(t, newTestClient(), a.Host+"/app:v1", b.Host+"/x/app:v1", CopyOptions{}, m.Digest)
	got := copied(t, newTestClient(), b.Host+"/x/app:v1", b.Host+"/y/app:v1", CopyOptions{}, m.Digest)
	if got.Mounted != 0 || got.Uploaded != m.Blobs {
		t.Errorf("%+v", got)
	}
	if seen := skopeoDigest(t, direct+"/y/app:v1"); seen != m.Digest.String() {
		t.Errorf("skopeo sees %s, want %s", seen, m.Digest)
	}
}

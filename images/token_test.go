package images

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/images/imagestest"
)

// tokens makes a registry want bearer tokens, which it gives to user and
// password for the scopes that are asked for, and which hold for some requests.
type tokens struct {
	host  string
	holds int

	mu     sync.Mutex
	given  map[string]int // token -> requests that it is still good for
	scopes []string
}

func (s *tokens) fault(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/token" {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret-word" {
			imagestest.Refuse(w, http.StatusUnauthorized, "UNAUTHORIZED")
			return true
		}
		s.scopes = append(s.scopes, r.URL.Query()["scope"]...)
		token := fmt.Sprintf("token-%d", len(s.given))
		s.given[token] = s.holds
		_ = json.NewEncoder(w).Encode(map[string]string{"token": token})
		return true
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s.given[token] > 0 {
		s.given[token]--
		return false
	}
	repo, action := "", "pull"
	if p := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/"), "/"); len(p) > 2 {
		repo = p[0] + "/" + p[1]
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		action = "push,pull"
	}
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test",scope="repository:%s:%s"`, s.host, repo, action))
	imagestest.Refuse(w, http.StatusUnauthorized, "UNAUTHORIZED")
	return true
}

func withLogin(host string) func(*ClientOptions) {
	return func(o *ClientOptions) {
		o.Keychain = DefaultKeychain(`{"auths":{"` + host + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("me:secret-word")) + `"}}}`)
	}
}

func TestTokens(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	// The second one expires in the middle. It holds for more requests than are
	// in flight, or somebody's second try might find it used up by the others.
	for _, holds := range []int{1 << 20, 20} {
		r := newRegistry(t)
		m := pushed(t, r, "a/app:v1", five(2))
		s := &tokens{host: r.Host, holds: holds, given: map[string]int{}}
		r.Fail(s.fault)
		var said strings.Builder
		var mu sync.Mutex
		few := func(o *ClientOptions) { o.Jobs = 4 }
		c := newTestClient(few, withLogin(r.Host), func(o *ClientOptions) {
			o.Sink = report.SinkFunc(func(e report.Event) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintln(&said, e.Message)
			})
		})
		copied(t, c, r.Host+"/a/app:v1", r.Host+"/b/app:v1", CopyOptions{}, m.Digest)
		if strings.Contains(said.String(), "secret") || strings.Contains(said.String(), "token-") {
			t.Errorf("a secret was told:\n%s", said.String())
		}
		other := newRegistry(t) // and whole uploads
		s2 := &tokens{host: other.Host, holds: holds, given: map[string]int{}}
		other.Fail(s2.fault)
		both := func(o *ClientOptions) {
			login := base64.StdEncoding.EncodeToString([]byte("me:secret-word"))
			o.Keychain = DefaultKeychain(`{"auths":{"` + r.Host + `":{"auth":"` + login + `"},"` + other.Host + `":{"auth":"` + login + `"}}}`)
		}
		copied(t, newTestClient(few, both), r.Host+"/a/app:v1", other.Host+"/b/app:v1", CopyOptions{}, m.Digest)
		if holds < 1<<20 && (len(s.given) < 3 || len(s2.given) < 2) {
			t.Errorf("%d and %d tokens were given: none has expired in the middle", len(s.given), len(s2.given))
		}
		if all := strings.Join(s.scopes, " "); !strings.Contains(all, "repository:b/app:push,pull") || !strings.Contains(all, "repository:a/app:pull") {
			t.Errorf("asked for %s", all)
		}
	}
}

func TestAWrongPassword(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	r := newRegistry(t)
	pushed(t, r, "a/app:v1", imagestest.Spec{Layers: 1, Size: 100})
	s := &tokens{host: r.Host, holds: 100, given: map[string]int{}}
	r.Fail(func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path == "/token" {
			imagestest.Refuse(w, http.StatusUnauthorized, "UNAUTHORIZED")
			return true
		}
		return s.fault(w, req)
	})
	p := failed(t, newTestClient(withLogin(r.Host)), r.Host+"/a/app:v1", r.Host+"/b/app:v1", CopyOptions{})
	if p.Class != 3 || !strings.Contains(p.Fix, "docker login "+r.Host) || strings.Contains(p.Error(), "secret") {
		t.Errorf("%d: %v", p.Class, p)
	}
}

// A redirect to another host, as registries have for blobs, gets no credentials.
func TestRedirectsGetNoCredentials(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	a, b := newRegistry(t), newRegistry(t)
	m := pushed(t, a, "a/app:v1", imagestest.Spec{Layers: 2, Size: 1000})
	inner := imagestest.InFront(a.Host)
	defer inner.Close()
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the storage got credentials")
		}
		a.ServeHTTP(w, r)
	}))
	defer storage.Close()
	s := &tokens{host: inner.Host, holds: 100, given: map[string]int{}}
	inner.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if s.fault(w, r) {
			return true
		}
		if isBlob(r) {
			http.Redirect(w, r, strings.Replace(storage.URL, "127.0.0.1", "localhost", 1)+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	copied(t, newTestClient(withLogin(inner.Host)), inner.Host+"/a/app:v1", b.Host+"/b/app:v1", CopyOptions{}, m.Digest)
}

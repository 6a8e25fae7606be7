package fetch

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func TestTLS(t *testing.T) {
	b := content(100)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, "", b) }))
	defer s.Close()
	s.Config.ErrorLog = quiet()
	plain, _ := cutServer(t, b)
	down := httptest.NewTLSServer(http.RedirectHandler(plain.URL+"/f?token=SECRET", http.StatusFound))
	defer down.Close()
	for _, c := range []struct {
		name, url, want string
		transport       http.RoundTripper
	}{
		{"unknown authority", s.URL, "certificate was not accepted", nil},
		{"no TLS there", strings.Replace(plain.URL, "http:", "https:", 1), "does not speak TLS", nil},
		{"https to http", down.URL, "redirects from https to http, which is refused", down.Client().Transport},
	} {
		client := fastClient(nil)
		client.Transport = c.transport
		path := filepath.Join(t.TempDir(), "f")
		_, err := client.Get(t.Context(), Request{URL: c.url, Path: path, Digest: sum(b)})
		if fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: there is a file", c.name)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	for _, url := range []string{s.URL, "http://nothing.invalid/"} {
		_, err := fastClient(nil).Get(t.Context(), Request{URL: url, Path: filepath.Join(t.TempDir(), "f"), TrustFirstUse: true})
		if fault.ClassOf(err) != fault.Network || strings.Contains(err.Error(), "tries") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestProxies goes through proxies that want a password, with http and https.
func TestProxies(t *testing.T) {
	b := content(100)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") == "" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		serve(w, r, "", b)
	}))
	defer proxy.Close()
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	get := func(target string, u *url.URL) error {
		c := fastClient(nil)
		c.Transport = &http.Transport{Proxy: http.ProxyURL(u)}
		_, err := c.Get(t.Context(), Request{URL: target, Path: filepath.Join(t.TempDir(), "f"), Digest: sum(b)})
		return err
	}
	for _, target := range []string{"http://example.invalid/f", "https://example.invalid/f"} {
		if err := get(target, u); fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), "the proxy wants a name and a password") {
			t.Errorf("%s: %v", target, err)
		}
	}
	u.User = url.UserPassword("me", "secret")
	if err := get("http://example.invalid/f", u); err != nil {
		t.Error(err)
	}
}

// TestProxyFromEnvironment runs itself with HTTP_PROXY set: Go reads it once a
// process.
func TestProxyFromEnvironment(t *testing.T) {
	b := content(100)
	if path := os.Getenv("FETCH_TEST_TO"); path != "" {
		if _, err := new(Client).Get(t.Context(), Request{URL: "http://example.invalid/f", Path: path, Digest: sum(b)}); err != nil {
			t.Fatal(err)
		}
		return
	}
	proxy, n := cutServer(t, b)
	path := filepath.Join(t.TempDir(), "f")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxyFromEnvironment$")
	cmd.Env = append(os.Environ(), "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=", "FETCH_TEST_TO="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b) || *n != 1 {
		t.Errorf("%v, %d bytes, %d requests at the proxy", err, len(got), *n)
	}
}

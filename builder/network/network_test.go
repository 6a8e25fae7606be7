package network

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
)

// authority writes a file with one certificate and returns its path.
func authority(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestValidateRefuses(t *testing.T) {
	key := write(t, "key.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
	one := func(r Registry) Settings { return Settings{Registries: []Registry{r}} }
	for _, c := range []struct {
		s           Settings
		field, want string
		class       fault.Class
	}{
		{Settings{Proxy: "proxy:3128"}, "--proxy", "is not an http", fault.Usage},
		{Settings{Proxy: "socks5://proxy:1080"}, "--proxy", "is not an http", fault.Usage},
		{Settings{Proxy: "http://"}, "--proxy", "names no host", fault.Usage},
		{Settings{Proxy: "http://proxy/path"}, "--proxy", "more than a host", fault.Usage},
		{Settings{Proxy: "http://a b"}, "--proxy", "can't be read", fault.Usage},
		{Settings{NoProxy: []string{"http://x"}}, "--no-proxy", "neither a host", fault.Usage},
		{Settings{NoProxy: []string{""}}, "--no-proxy", "neither a host", fault.Usage},
		{Settings{ClusterNetworks: []string{"10.0.0.0"}}, "--cluster-network", "is not a network", fault.Usage},
		{Settings{ExtraCAs: []string{filepath.Join(t.TempDir(), "none")}}, "--extra-ca", "can't be read", fault.Input},
		{Settings{ExtraCAs: []string{t.TempDir()}}, "--extra-ca", "is no file", fault.Input},
		{Settings{ExtraCAs: []string{write(t, "text", "hello")}}, "--extra-ca", "no certificate", fault.Input},
		{Settings{ExtraCAs: []string{key}}, "--extra-ca", "private key", fault.Input},
		{one(Registry{Host: "https://docker.io", Mirrors: []string{"https://m"}}), "--registry", "is not a registry's name", fault.Usage},
		{one(Registry{Host: "../x", Mirrors: []string{"https://m"}}), "--registry", "is not a registry's name", fault.Usage},
		{one(Registry{Host: "docker.io"}), "--registry", "says nothing", fault.Usage},
		{one(Registry{Host: "_default", PlainHTTP: true}), "--registry", "stands for all", fault.Usage},
		{one(Registry{Host: "docker.io", Mirrors: []string{"mirror"}}), "--registry", "is not the URL", fault.Usage},
		{one(Registry{Host: "docker.io", Mirrors: []string{"https://m/?x=1"}}), "--registry", "more than a host", fault.Usage},
		{one(Registry{Host: "docker.io", Mirrors: []string{"https://me:secret@m"}}), "--registry", "password", fault.Usage},
		{one(Registry{Host: "a.b", CA: key}), "--registry", "private key", fault.Input},
		{Settings{Registries: []Registry{{Host: "a.b", SkipVerify: true}, {Host: "a.b", SkipVerify: true}}}, "--registry", "there twice", fault.Usage},
	} {
		all := fault.All(c.s.Validate())
		if len(all) != 1 || all[0].Field != c.field || all[0].Class != c.class || !strings.Contains(all[0].Why, c.want) || all[0].Fix == "" {
			t.Errorf("%+v: got %v, want one problem of %s: %s", c.s, all, c.field, c.want)
		}
	}
	many := Settings{Proxy: "x", NoProxy: []string{"a/b"}, ClusterNetworks: []string{"y"}, Registries: []Registry{{Host: "-"}}}
	if n := len(fault.All(many.Validate())); n < 5 {
		t.Errorf("only %d problems are told together", n)
	}
}

func TestNoMessageHoldsAPassword(t *testing.T) {
	for _, proxy := range []string{"http://me:sesame@proxy/path", "ftp://me:sesame@proxy", "http://me:sesame@", "me:sesame@proxy:3128", "http://me:ses%ame@proxy", "http://me:sesame@pro xy"} {
		err := Settings{Proxy: proxy}.Validate()
		if err == nil || strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "ses%") {
			t.Errorf("%s: %v", proxy, err)
		}
	}
	mirror := Settings{Registries: []Registry{{Host: "docker.io", Mirrors: []string{"https://me:sesame@m"}}}}
	if err := mirror.Validate(); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("mirror: %v", err)
	}
}

func TestParseRegistry(t *testing.T) {
	good := map[string]Registry{
		"docker.io=https://m":                                    {Host: "docker.io", Mirrors: []string{"https://m"}},
		"docker.io=https://m,http://n:5000/p,ca=c.pem":           {Host: "docker.io", Mirrors: []string{"https://m", "http://n:5000/p"}, CA: "c.pem"},
		"registry.lan:5000,plain-http":                           {Host: "registry.lan:5000", PlainHTTP: true},
		"_default=https://m,skip-verify":                         {Host: "_default", Mirrors: []string{"https://m"}, SkipVerify: true},
		"registry.lan,ca=c.pem,plain-http,skip-verify,https://m": {Host: "registry.lan", Mirrors: []string{"https://m"}, PlainHTTP: true, CA: "c.pem", SkipVerify: true},
	}
	for text, want := range good {
		got, err := ParseRegistry(text)
		if err != nil || got.String() != want.String() {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"docker.io=mirror", "docker.io,tls", "docker.io,ca=", "a,ca=x,ca=y", "docker.io="} {
		if _, err := ParseRegistry(text); fault.ClassOf(err) != fault.Usage {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParseRegistry(f *testing.F) {
	for _, s := range []string{"docker.io=https://m", "a:5000,plain-http", "_default=https://m/p,ca=x,skip-verify", "=,", "a=b=c://d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRegistry(text)
		if err != nil || r.validate() != nil {
			return
		}
		again, err := ParseRegistry(r.String())
		if err != nil || again.String() != r.String() {
			t.Errorf("%q became %q, and that %q (%v)", text, r, again, err)
		}
		if strings.ContainsAny(r.folder(), `:/\`) || r.folder() == ".." {
			t.Errorf("%q gives the folder %q", text, r.folder())
		}
	})
}

// TestHostsTOML has the forms of containerd's docs/hosts.md.
func TestHostsTOML(t *testing.T) {
	for _, c := range []struct{ flag, folder, want string }{
		{"docker.io=https://m.lan:5000,ca=c.pem", "docker.io",
			"server = \"https://registry-1.docker.io\"\nca = \"CA\"\n\n[host.\"https://m.lan:5000\"]\n  capabilities = [\"pull\", \"resolve\"]\n  ca = \"CA\"\n"},
		{"registry.lan:5000,plain-http", "registry.lan_5000_", "server = \"http://registry.lan:5000\"\n"},
		{"registry.k8s.io=https://harbor.lan/k8s/", "registry.k8s.io",
			"server = \"https://registry.k8s.io\"\n\n[host.\"https://harbor.lan/v2/k8s\"]\n  capabilities = [\"pull\", \"resolve\"]\n  override_path = true\n"},
		{"_default=http://m.lan:5000,skip-verify", "_default",
			"skip_verify = true\n\n[host.\"http://m.lan:5000\"]\n  capabilities = [\"pull\", \"resolve\"]\n"},
		{"[fd00::1]:5000,plain-http", "[fd001]_5000_", "server = \"http://[fd00::1]:5000\"\n"},
	} {
		r, err := ParseRegistry(c.flag)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.hostsTOML("CA"); got != c.want || r.folder() != c.folder {
			t.Errorf("%s: folder %s, got\n%s\nwant\n%s", c.flag, r.folder(), got, c.want)
		}
	}
}

func TestExceptionsForWindows(t *testing.T) {
	s := Settings{Proxy: "http://p", ClusterNetworks: DefaultClusterNetworks("calico"), NoProxy: []string{"10.0.0.7", ".lan"}}
	got := winHTTPSkip(s.Exceptions())
	for _, want := range []string{"<local>", "192.168.*", "10.96.*", "10.111.*", "*.cluster.local", "*.lan", "10.0.0.7"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	if slices.Contains(got, "10.112.*") || slices.Contains(got, "::1") {
		t.Errorf("too much in %v", got)
	}
}

func TestNodeFile(t *testing.T) {
	ca := authority(t, "one")
	s := Settings{Proxy: "http://me:sesame@proxy.lan", ExtraCAs: []string{ca}, ClusterNetworks: []string{"10.244.0.0/16"},
		Registries: []Registry{{Host: "docker.io", Mirrors: []string{"https://m"}, CA: ca}}}
	data, err := s.NodeFile()
	if err != nil {
		t.Fatal(err)
	}
	var n nodeFile
	if err := json.Unmarshal(data, &n); err != nil {
		t.Fatal(err)
	}
	if len(n.Certs) != 2 || n.Certs[0].Path != "docker.io/ca.crt" || !strings.Contains(n.Certs[1].Text, `ca = "C:/etc/containerd/certs.d/docker.io/ca.crt"`) {
		t.Errorf("certs: %+v", n.Certs)
	}
	if len(n.Authorities) != 1 || n.WinHTTPProxy != "proxy.lan:80" || n.Environment["HTTPS_PROXY"] != s.Proxy || !strings.Contains(n.Environment["NO_PROXY"], "10.244.0.0/16") {
		t.Errorf("got %+v", n)
	}
	again, _ := s.NodeFile()
	if string(again) != string(data) {
		t.Error("two renderings differ")
	}
}

// TestTransport goes to a server with an own authority, and through a proxy.
func TestTransport(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("direct")) }))
	defer server.Close()
	ca := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	get := func(s Settings, url string) (string, error) {
		tr, err := s.Transport()
		if err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		return resp.Header.Get("Via"), nil
	}
	if _, err := get(Settings{}, server.URL); err == nil {
		t.Error("an unknown authority was trusted")
	}
	if _, err := get(Settings{ExtraCAs: []string{ca}}, server.URL); err != nil {
		t.Errorf("the named authority is not trusted: %v", err)
	}
	var auth string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth = r.Header.Get("Proxy-Authorization")
		w.Header().Set("Via", "proxy "+r.URL.Host)
	}))
	defer proxy.Close()
	s := Settings{Proxy: strings.Replace(proxy.URL, "http://", "http://me:sesame@", 1), NoProxy: []string{"near.example"}}
	if via, err := get(s, "http://far.example/x"); err != nil || via != "proxy far.example" || auth == "" {
		t.Errorf("via %q, authorization %q, %v", via, auth, err)
	}
	if via, err := get(s, "http://near.example:1/x"); err == nil || via != "" {
		t.Errorf("an exception went through the proxy: %q, %v", via, err)
	}
}

func TestChildEnv(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	ca := authority(t, "one")
	env, err := Settings{Proxy: "http://p:1", ExtraCAs: []string{ca}}.ChildEnv(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "ca-*.pem"))
	if len(files) != 1 {
		t.Fatalf("bundles: %v", files)
	}
	for _, want := range []string{"https_proxy=http://p:1", "HTTPS_PROXY=http://p:1", "SSL_CERT_FILE=" + files[0], "GIT_SSL_CAINFO=" + files[0]} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %v", want, env)
		}
	}
	data, _ := os.ReadFile(files[0])
	want, _ := readCA("--extra-ca", ca)
	if !strings.HasSuffix(string(data), string(want)) {
		t.Error("the bundle lacks the authority")
	}
	if env, err := (Settings{}).ChildEnv(t.Context(), filepath.Join(dir, "none")); err != nil || env != nil {
		t.Errorf("settings that are empty give %v, %v", env, err)
	}
}

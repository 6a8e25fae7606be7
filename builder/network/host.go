package network

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/fetch"
)

// Transport returns what downloads of this host go through: the settings'
// proxy, else the environment's, and their authorities beside the system's.
func (s Settings) Transport() (http.RoundTripper, error) {
	proxy, roots, err := s.Route()
	if err != nil {
		return nil, err
	}
	return fetch.NewTransport(fetch.TransportConfig{Proxy: proxy, Roots: roots}), nil
}

// Route returns what Transport is made of, for who makes its own: the proxy of
// a request, nil for the environment's, and the trusted authorities, nil for
// the system's.
func (s Settings) Route() (proxy func(*http.Request) (*url.URL, error), roots *x509.CertPool, err error) {
	if s.Proxy != "" {
		config := httpproxy.Config{HTTPProxy: s.Proxy, HTTPSProxy: s.Proxy, NoProxy: strings.Join(s.Exceptions(), ",")}
		forURL := config.ProxyFunc()
		proxy = func(r *http.Request) (*url.URL, error) { return forURL(r.URL) }
	}
	if len(s.ExtraCAs) == 0 {
		return proxy, nil, nil
	}
	if roots, err = x509.SystemCertPool(); err != nil {
		return nil, nil, fmt.Errorf("reading the system's certificates: %w", err)
	}
	for _, file := range s.ExtraCAs {
		data, err := readCA("--extra-ca", file)
		if err != nil {
			return nil, nil, err
		}
		roots.AppendCertsFromPEM(data)
	}
	return proxy, roots, nil
}

// systemBundles are where Linux distributions keep the certificates of all
// authorities in one file.
var systemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/ssl/cert.pem",                                 // Alpine, macOS
}

// ChildEnv returns the variables, "KEY=value", by which git and the go command
// use the settings. ExtraCAs are written to a file in dir, beside the system's,
// named after its content; dir is made. The go command reads that on Linux
// only: on macOS and Windows it asks the system.
func (s Settings) ChildEnv(ctx context.Context, dir string) ([]string, error) {
	var env []string
	if s.Proxy != "" {
		for _, key := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
			value := s.environment()[key]
			env = append(env, key+"="+value, strings.ToLower(key)+"="+value)
		}
	}
	if len(s.ExtraCAs) == 0 {
		return env, nil
	}
	var all bytes.Buffer
	for _, file := range systemBundles {
		if data, err := os.ReadFile(file); err == nil {
			all.Write(data)
			break
		}
	}
	for _, file := range s.ExtraCAs {
		data, err := readCA("--extra-ca", file)
		if err != nil {
			return nil, err
		}
		all.WriteByte('\n')
		all.Write(data)
	}
	bundle := filepath.Join(dir, fmt.Sprintf("ca-%x.pem", sha256.Sum256(all.Bytes()))[:len("ca-")+16]+".pem")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("writing the certificates for git and go: %w", err)
	}
	if err := atomicfile.Write(ctx, bundle, all.Bytes(), 0o644); err != nil {
		return nil, fmt.Errorf("writing the certificates for git and go: %w", err)
	}
	return append(env, "SSL_CERT_FILE="+bundle, "GIT_SSL_CAINFO="+bundle), nil
}

// certificates splits a checked file into its certificates.
func certificates(data []byte) []string {
	var out []string
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return out
		}
		if block.Type == "CERTIFICATE" {
			block.Headers = nil
			out = append(out, string(pem.EncodeToMemory(block)))
		}
	}
}

// octets writes an IPv4 network as WinHTTP knows them, by leading numbers with a
// star: "10.*" for 10.0.0.0/8, and sixteen entries for a /12.
func octets(network string) []string {
	p, err := netip.ParsePrefix(network)
	if err != nil || !p.Addr().Is4() || p.Bits() == 0 {
		return nil
	}
	first := p.Masked().Addr().As4()
	whole, rest := p.Bits()/8, p.Bits()%8
	count := 1
	if rest > 0 {
		count = 1 << (8 - rest)
		whole++
	}
	var out []string
	for i := range count {
		var parts []string
		for j := range whole {
			n := int(first[j])
			if j == whole-1 {
				n += i
			}
			parts = append(parts, strconv.Itoa(n))
		}
		if whole < 4 {
			parts = append(parts, "*")
		}
		out = append(out, strings.Join(parts, "."))
	}
	return out
}

// Offline returns what downloads go through where the network must not be used:
// every request is a *fault.Problem of class fault.Network.
func Offline() http.RoundTripper { return fetch.Offline() }

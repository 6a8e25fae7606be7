package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
)

// maxRedirects is what browsers allow, more or less.
const maxRedirects = 10

// TransportConfig says how a Transport of NewTransport reaches servers. The zero
// value has the environment's proxy and the system's authorities.
type TransportConfig struct {
	Proxy func(*http.Request) (*url.URL, error) // Optional: default: the environment's
	Roots *x509.CertPool                        // Optional: the authorities that are trusted; default: the system's
}

// NewTransport returns a Transport for Client, which never unpacks what it gets.
func NewTransport(c TransportConfig) http.RoundTripper {
	if c.Proxy == nil {
		c.Proxy = http.ProxyFromEnvironment
	}
	return &http.Transport{
		Proxy:                 c.Proxy,
		DialContext:           (&net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   20 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
		// A Client is made anew for each Get: nothing is kept open after it.
		DisableKeepAlives: true,
	}
}

// Offline returns a Transport that refuses every request. What is here already
// is still found.
func Offline() http.RoundTripper { return offline{} }

type offline struct{}

func (offline) RoundTrip(*http.Request) (*http.Response, error) { return nil, RefuseOffline("") }

// RefuseOffline returns the *fault.Problem of something that would have to be
// fetched while the network must not be used. Whoever knows the flag it is about
// adds that.
func RefuseOffline(what string) *fault.Problem {
	return &fault.Problem{Class: fault.Network, Value: what, Why: "is not on this machine, and the network must not be used (--offline)",
		Fix: "run it once without --offline"}
}

// checkRedirect refuses circles, long chains and the way from https to http.
func checkRedirect(req *http.Request, via []*http.Request) error {
	refuse := func(why string) error {
		return &fault.Problem{Class: fault.Network, Why: why, Fix: "check the URL, and whether a proxy or a login page is in between"}
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return refuse("the server redirects from https to " + req.URL.Scheme + ", which is refused (" + Redact(req.URL.String()) + ")")
	}
	for _, v := range via {
		if v.URL.String() == req.URL.String() {
			return refuse("the server redirects in a circle (" + Redact(req.URL.String()) + ")")
		}
	}
	if len(via) >= maxRedirects {
		return refuse("the server redirects again and again")
	}
	return nil
}

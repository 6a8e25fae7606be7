package images

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// NewTransport returns a transport for many requests at once. proxy, which may
// be nil for the environment's, says what a request goes through; roots, which
// may be nil for the system's, are the authorities that are trusted.
func NewTransport(proxy func(*http.Request) (*url.URL, error), roots *x509.CertPool, jobs int) *http.Transport {
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return &http.Transport{
		Proxy:                 proxy,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   2 * jobs,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute, // a registry may hash gigabytes before it answers to an upload
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
}

// conn is what was found out about one registry.
type conn struct {
	reg name.Registry

	mu        sync.Mutex
	scheme    string // empty: not known yet
	auth      authn.Authenticator
	challenge *transport.Challenge // what it wants to see; nil: nothing so far
	byScope   map[string]http.RoundTripper
}

func (c *Client) conn(reg name.Registry) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.conns[reg.RegistryStr()]
	if n == nil {
		n = &conn{reg: reg, byScope: map[string]http.RoundTripper{}}
		c.conns[reg.RegistryStr()] = n
	}
	return n
}

// open returns the scheme and the transport for requests of a scope, and
// whether it carries what the registry wants to see. Without credentials for
// it a registry is not asked what it wants before it refuses something: that
// saves a request.
func (c *Client) open(ctx context.Context, n *conn, scopes []string) (scheme string, rt http.RoundTripper, authorized bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.scheme == "" {
		if n.auth, err = authn.Resolve(ctx, c.opts.Keychain, n.reg); err != nil {
			return "", nil, false, fmt.Errorf("looking for credentials of %s: %w", n.reg.RegistryStr(), err)
		}
		if n.scheme, err = c.findScheme(ctx, n.reg); err != nil {
			return "", nil, false, err
		}
		if n.auth != authn.Anonymous {
			if err := c.learn(ctx, n); err != nil {
				return "", nil, false, err
			}
		}
	}
	if n.challenge == nil {
		return n.scheme, c.base, false, nil
	}
	rt, err = c.authorize(ctx, n, scopes)
	return n.scheme, rt, true, err
}

// learn asks a registry what it wants to see.
func (c *Client) learn(ctx context.Context, n *conn) error {
	challenge, err := transport.Ping(ctx, n.reg, c.base)
	if err != nil {
		n.scheme = ""
		return err
	}
	n.challenge = challenge
	return nil
}

// relearn is called when a request without credentials was refused.
func (c *Client) relearn(ctx context.Context, n *conn) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.challenge != nil {
		return nil // another goroutine was quicker
	}
	return c.learn(ctx, n)
}

// authorize returns the transport for some scopes, with a token if need be.
func (c *Client) authorize(ctx context.Context, n *conn, scopes []string) (http.RoundTripper, error) {
	bearer := strings.EqualFold(n.challenge.Scheme, "bearer")
	key := ""
	if bearer {
		key = strings.Join(scopes, " ")
	}
	if rt := n.byScope[key]; rt != nil {
		return rt, nil
	}
	token := &transport.Token{}
	if bearer {
		var err error
		if token, err = transport.Exchange(ctx, n.reg, n.auth, c.base, scopes, n.challenge); err != nil {
			return nil, err
		}
	}
	rt, err := transport.FromToken(n.reg, n.auth, c.base, n.challenge, token)
	if err == nil {
		n.byScope[key] = rt
	}
	return rt, err
}

// findScheme finds out whether a registry that may lack TLS (a loopback or
// private address, or one of PlainHTTP) has it, by a handshake that decides
// nothing else. A certificate that is not trusted is no reason to go without.
func (c *Client) findScheme(ctx context.Context, reg name.Registry) (string, error) {
	if reg.Scheme() != "http" {
		return "https", nil
	}
	host := reg.RegistryStr()
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "443")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // nothing is sent over it
	raw, err := d.DialContext(ctx, "tcp", host)
	if err == nil {
		raw.Close()
		return "https", nil
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && reg.RegistryStr() == host {
		return "", err
	}
	return "http", nil
}

// do sends a request that build makes from the registry's scheme. It is made
// anew where the registry wants credentials first.
func (c *Client) do(ctx context.Context, reg name.Registry, scopes []string, build func(scheme string) (*http.Request, error)) (*http.Response, error) {
	n := c.conn(reg)
	for {
		scheme, rt, authorized, err := c.open(ctx, n, scopes)
		if err != nil {
			return nil, err
		}
		req, err := build(scheme)
		if err != nil {
			return nil, err
		}
		client := &http.Client{Transport: rt}
		resp, err := client.Do(req.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized || authorized {
			return resp, nil
		}
		resp.Body.Close()
		if err := c.relearn(ctx, n); err != nil {
			return nil, err
		}
	}
}

// slot runs f when fewer than Jobs others run.
func (c *Client) slot(ctx context.Context, f func() error) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}

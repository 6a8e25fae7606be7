package winrm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"

	"github.com/wbox-dev/wbox/builder/guest"
)

const soapType = "application/soap+xml;charset=UTF-8"

// maxAnswer bounds what is read of one answer.
const maxAnswer = 4 << 20

// pinned is HTTPS with Basic authentication to the holder of one certificate.
type pinned struct {
	cfg  Config
	url  string
	http *http.Transport
}

func newPinned(cfg Config) *pinned {
	t := newHTTP(cfg)
	t.DialContext = dialer(cfg)
	t.TLSHandshakeTimeout = cfg.DialTimeout
	t.TLSClientConfig = &tls.Config{
		MinVersion: tls.VersionTLS12,
		// The certificate is self-signed by design: VerifyConnection compares it,
		// also in resumed sessions, before a byte of a request is sent.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection:   func(s tls.ConnectionState) error { return verifyLeaf(s, cfg.PinnedSHA256) },
	}
	return &pinned{cfg: cfg, url: newMessages(cfg).url, http: t}
}

func verifyLeaf(s tls.ConnectionState, pin [32]byte) error {
	if len(s.PeerCertificates) == 0 {
		return fmt.Errorf("no certificate where the guest should be: %w", guest.ErrRefused)
	}
	if got := sha256.Sum256(s.PeerCertificates[0].Raw); got != pin {
		return fmt.Errorf("a stranger answers where the guest should be: its certificate is %s, the guest's is %s: %w",
			hex.EncodeToString(got[:8]), hex.EncodeToString(pin[:8]), guest.ErrRefused)
	}
	return nil
}

// newHTTP returns what both transports have in common. Proxy stays nil: the
// environment's proxy must never see a guest's commands.
func newHTTP(cfg Config) *http.Transport {
	return &http.Transport{
		ResponseHeaderTimeout: cfg.OperationTimeout + cfg.Grace,
		DisableCompression:    true,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       cfg.OperationTimeout + cfg.Grace,                       // below the two minutes after which Windows hangs up
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 only
	}
}

// dialer goes to the configured address, whatever a URL says.
func dialer(cfg Config) func(context.Context, string, string) (net.Conn, error) {
	d := &net.Dialer{Timeout: cfg.DialTimeout}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network(cfg.Addr), cfg.Addr.String())
	}
}

func network(a netip.AddrPort) string {
	if a.Addr().Is4() {
		return "tcp4"
	}
	return "tcp6"
}

func (p *pinned) close() { p.http.CloseIdleConnections() }

func (p *pinned) post(ctx context.Context, message []byte) ([]byte, error) {
	req, sent, err := newRequest(ctx, p.url, soapType, message)
	if err != nil {
		return nil, &postError{err: err}
	}
	req.SetBasicAuth(p.cfg.User, string(p.cfg.Password))
	resp, err := p.http.RoundTrip(req)
	if err != nil {
		return nil, &postError{sent: sent.Load(), err: err}
	}
	body, err := readBody(resp)
	if err != nil {
		return nil, &postError{sent: true, err: err}
	}
	return judge(resp.StatusCode, body)
}

// newRequest returns a request and a flag that tells whether any of it was sent.
func newRequest(ctx context.Context, url, contentType string, body []byte) (*http.Request, *atomic.Bool, error) {
	sent := new(atomic.Bool)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaderField: func(string, []string) { sent.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "wbox")
	return req, sent, nil
}

func readBody(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxAnswer {
		return nil, errors.New("the guest's answer has no end")
	}
	return body, nil
}

// judge turns an HTTP answer into an envelope or an error.
func judge(status int, body []byte) ([]byte, error) {
	if status == http.StatusOK {
		return body, nil
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return nil, &postError{err: refused(status)}
	}
	if f := parseFault(body); f != nil {
		if f.denied() {
			return nil, &postError{err: fmt.Errorf("%w: %w", f, guest.ErrRefused)}
		}
		return nil, f
	}
	// http.sys answers 404 and 503 while the WinRM service is not up.
	unserved := status == http.StatusNotFound || status == http.StatusServiceUnavailable
	return nil, &postError{sent: !unserved, err: fmt.Errorf("the guest answered with HTTP status %d", status)}
}

func refused(status int) error {
	return fmt.Errorf("the guest does not take the account or its password (HTTP status %d): %w", status, guest.ErrRefused)
}

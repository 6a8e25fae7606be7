package winrm_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/guest/guesttest"
	"github.com/wbox-dev/wbox/builder/guest/winrm"
	"github.com/wbox-dev/wbox/scripts/standin/winrmd"
)

const (
	user     = "wbox-bake"
	password = "c4n@ry-Pässw0rd" // looked for in everything that is printed
)

type shell guesttest.Handler

func (s shell) Run(ctx context.Context, _, line string, in io.Reader, out, errs io.Writer) int {
	return s(ctx, line, in, out, errs)
}

func accounts(name string) (string, bool) { return password, name == user }

// certificate borrows httptest's certificate and returns its digest.
func certificate(t *testing.T) (*tls.Config, [32]byte) {
	t.Helper()
	ts := httptest.NewTLSServer(http.NotFoundHandler())
	defer ts.Close()
	return &tls.Config{Certificates: ts.TLS.Certificates, MinVersion: tls.VersionTLS12}, sha256.Sum256(ts.Certificate().Raw)
}

// serve runs a WinRM server until the test ends.
func serve(t *testing.T, s *winrmd.Server, config *tls.Config) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return addrOf(l)
}

func addrOf(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

// between puts a wire that can be cut or frozen before the guest at addr.
func between(t *testing.T, addr netip.AddrPort, b guesttest.Behaviour) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
	})
	copyUntil := func(dst, src net.Conn) {
		buf := make([]byte, 4096)
		for {
			n, err := src.Read(buf)
			select {
			case <-b.Freeze:
				return // both ends stay open
			default:
			}
			if n > 0 {
				if _, err := dst.Write(buf[:n]); err != nil {
					src.Close()
					return
				}
			}
			if err != nil {
				dst.Close()
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", addr.String())
			if err != nil {
				c.Close()
				continue
			}
			mu.Lock()
			open = append(open, c, s)
			mu.Unlock()
			go copyUntil(c, s)
			go copyUntil(s, c)
			if b.Cut != nil {
				go func() {
					<-b.Cut
					l.Close()
					_ = c.(*net.TCPConn).SetLinger(0) // a reset, not an orderly end
					c.Close()
				}()
			}
		}
	}()
	return addrOf(l)
}

func newConn(secure bool) func(t *testing.T, b guesttest.Behaviour) guest.Conn {
	return func(t *testing.T, b guesttest.Behaviour) guest.Conn {
		t.Helper()
		s := &winrmd.Server{Shell: shell(b.Handler), Accounts: accounts, Basic: func() bool { return true }}
		cfg := winrm.Config{User: user, Password: password, OperationTimeout: time.Second, Grace: 10 * time.Second}
		if b.Bound != 0 {
			cfg.Grace = b.Bound - cfg.OperationTimeout
		}
		if b.WrongPassword {
			cfg.Password = "wrong"
		}
		var config *tls.Config
		if secure {
			cfg.TLS = true
			config, cfg.PinnedSHA256 = certificate(t)
		}
		cfg.Addr = serve(t, s, config)
		if b.Cut != nil || b.Freeze != nil {
			cfg.Addr = between(t, cfg.Addr, b)
		}
		c, err := winrm.Dial(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
}

func TestConformanceHTTPS(t *testing.T) { t.Parallel(); guesttest.Run(t, newConn(true)) }
func TestConformanceNTLM(t *testing.T)  { t.Parallel(); guesttest.Run(t, newConn(false)) }

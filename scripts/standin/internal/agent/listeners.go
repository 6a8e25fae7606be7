package agent

import (
	"context"
	"crypto/sha1" //nolint:gosec // Windows names certificates by it
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
	"github.com/wbox-dev/wbox/scripts/standin/winrmd"
)

// Listen opens a TCP port.
type Listen func(ctx context.Context, port int) (net.Listener, error)

// The ports of WinRM.
const (
	httpPort  = 5985
	httpsPort = 5986
)

// applyListeners opens and closes ports until they are as the state says. Open
// ones end with life, the context of this boot, not with whoever asked.
func (a *Agent) applyListeners() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life == nil {
		return errors.New("nothing listens before the boot")
	}
	if a.server == nil {
		a.server = a.newServer()
		a.listeners = map[string]context.CancelFunc{}
	}
	w := a.State.Get().WinRM
	if err := a.applyListener("HTTP", w.HTTP, httpPort, ""); err != nil {
		return err
	}
	return a.applyListener("HTTPS", w.HTTPS, httpsPort, w.Certificate)
}

// applyListener opens or closes one port. A changed certificate is a new
// listener: its key is part of the name it is kept under.
func (a *Agent) applyListener(transport string, on bool, port int, certificate string) error {
	key := transport + " " + certificate
	for k, stop := range a.listeners {
		if strings.HasPrefix(k, transport+" ") && (!on || k != key) {
			stop()
			delete(a.listeners, k)
			a.Logf("winrm: %s is closed", transport)
		}
	}
	if _, open := a.listeners[key]; open || !on {
		return nil
	}
	var config *tls.Config
	if transport == "HTTPS" {
		pair, err := tls.LoadX509KeyPair(a.certificate(certificate), a.certificate(certificate))
		if err != nil {
			return fmt.Errorf("opening the HTTPS listener: %w", err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	l, err := a.Listen(a.life, port)
	if err != nil {
		return fmt.Errorf("opening the %s listener: %w", transport, err)
	}
	ctx, stop := context.WithCancel(a.life)
	a.listeners[key] = stop
	go func() {
		if err := a.server.Serve(ctx, l, config); err != nil {
			a.Logf("winrm: %s: %v", transport, err)
		}
	}()
	a.Logf("winrm: listening with %s on port %d", transport, port)
	return nil
}

func (a *Agent) newServer() *winrmd.Server {
	return &winrmd.Server{
		Shell:        a,
		Hold:         a.hold,
		ComputerName: a.State.Get().ComputerName,
		Accounts: func(user string) (string, bool) {
			s := a.State.Get()
			account := s.Account(user)
			if account == nil || account.Disabled {
				return "", false
			}
			return account.Password, true
		},
		Basic:            func() bool { return a.State.Get().WinRM.Basic },
		AllowUnencrypted: func() bool { return a.State.Get().WinRM.AllowUnencrypted },
	}
}

// setWinRM stores a certificate, where one is given, and listens as told.
func (a *Agent) setWinRM(w state.WinRM, pfx []byte, password string) error {
	if pfx != nil {
		thumbprint, err := a.importPFX(pfx, password)
		if err != nil {
			return err
		}
		w.Certificate = thumbprint
	}
	if w.HTTPS && w.Certificate == "" {
		return errors.New("an HTTPS listener needs a certificate")
	}
	if err := a.State.Change(func(s *state.State) error { s.WinRM = w; return nil }); err != nil {
		return err
	}
	return a.applyListeners()
}

// certificates is the folder of the machine's certificates with private keys.
func (a *Agent) certificates() string { return filepath.Join(a.C, state.Dir, "certificates") }

func (a *Agent) certificate(thumbprint string) string {
	return filepath.Join(a.certificates(), strings.ToUpper(thumbprint)+".pem")
}

// importPFX keeps a certificate and its key, and returns its thumbprint.
func (a *Agent) importPFX(pfx []byte, password string) (string, error) {
	key, cert, _, err := pkcs12.DecodeChain(pfx, password)
	if err != nil {
		return "", fmt.Errorf("reading the certificate: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("reading the certificate's key: %w", err)
	}
	sum := sha1.Sum(cert.Raw) //nolint:gosec // Windows names certificates by it
	thumbprint := strings.ToUpper(hex.EncodeToString(sum[:]))
	data := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
	if err := os.MkdirAll(a.certificates(), 0o700); err != nil {
		return "", fmt.Errorf("keeping the certificate: %w", err)
	}
	if err := os.WriteFile(a.certificate(thumbprint), data, 0o600); err != nil {
		return "", fmt.Errorf("keeping the certificate: %w", err)
	}
	return thumbprint, nil
}

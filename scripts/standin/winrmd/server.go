// Package winrmd is a small WinRM (WS-Management) server: the remote command
// shell of MS-WSMV with Basic and NTLM authentication and NTLM's message
// encryption. The stand-in guest and the tests of the WinRM client run on it.
//
// It imports nothing of ours (above all not builder/guest/winrm, the client that
// it tests) and keeps to the standard library as far as it can: it runs inside
// a guest under software emulation.
package winrmd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Shell runs the command lines that clients send.
type Shell interface {
	// Run runs one command line for user and returns its exit code. ctx ends
	// when the client terminates the command or deletes its shell, and when
	// the server ends; Run should then return soon. stdin ends (io.EOF) only
	// where the client says so, or with ctx. Writes may block until the client
	// fetches what was written before.
	Run(ctx context.Context, user string, line string, stdin io.Reader, stdout, stderr io.Writer) (exit int)
}

// Server holds the shells of one guest. The zero value of every optional field
// means what a fresh Windows does. A Server may serve several listeners at
// once; it must not be copied.
type Server struct {
	// Shell runs the commands. Required.
	Shell Shell
	// Accounts returns the password of a user who may log on, asked at every
	// log-on with the name as the client wrote it, without a domain. Required.
	Accounts func(user string) (password string, ok bool)
	// Basic says whether Basic authentication is offered (winrm/config/service/auth).
	// nil: it is not.
	Basic func() bool
	// AllowUnencrypted says whether Basic and unsealed NTLM are taken over plain
	// HTTP (winrm/config/service). nil: they are not.
	AllowUnencrypted func() bool
	// ComputerName is the name given in NTLM challenges and faults; "WIN-STANDIN" where empty.
	ComputerName string
	// MaxShells limits the open shells per user; 30 where zero.
	MaxShells int
	// IdleTimeout is how long a shell without requests and without a running
	// command is kept; two hours where zero.
	IdleTimeout time.Duration

	// Hold is called with each request before it is answered, and may take its
	// time: a test makes the server mute by it. Optional.
	Hold func(ctx context.Context)

	mu     sync.Mutex
	shells map[string]*shell
	open   map[net.Conn]bool
}

// Cut breaks all connections; commands go on.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Close()
	}
}

// track remembers the open connections.
func (s *Server) track(c net.Conn, is http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch is {
	case http.StateNew:
		if s.open == nil {
			s.open = map[net.Conn]bool{}
		}
		s.open[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(s.open, c)
	}
}

func (s *Server) computerName() string {
	if s.ComputerName != "" {
		return s.ComputerName
	}
	return "WIN-STANDIN"
}

func (s *Server) basic() bool            { return s.Basic != nil && s.Basic() }
func (s *Server) allowUnencrypted() bool { return s.AllowUnencrypted != nil && s.AllowUnencrypted() }

// Serve answers on l, with TLS where tlsConfig is given, until ctx ends or the
// listener fails. When ctx ends, connections are cut as by a reboot and all
// commands are cancelled; the error is then nil. Serve closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener, tlsConfig *tls.Config) error {
	srv := &http.Server{
		Handler: s.Handler(),
		// NTLM authenticates a connection, not a request.
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, &conn{})
		},
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // Windows speaks HTTP/1.1 here
		ErrorLog:          discardLog(),
		ConnState:         s.track,
	}
	if tlsConfig != nil {
		l = tls.NewListener(l, tlsConfig)
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	defer s.closeShells()
	err := srv.Serve(l)
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	_ = srv.Close()
	return err
}

// Handler returns the server as an http.Handler. NTLM works only on connections
// that Serve accepted, since it needs state per connection; Basic works anywhere.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

// maxRequest is Windows' default MaxEnvelopeSizekb.
const maxRequest = 500 << 10

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "Microsoft-HTTPAPI/2.0")
	if r.URL.Path != "/wsman" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if s.Hold != nil {
		s.Hold(r.Context())
	}
	who, ok := s.authenticate(w, r)
	if !ok {
		return
	}
	sealed := false
	if isSealed(r.Header.Get("Content-Type")) {
		if who.session == nil {
			s.refuse(w, "")
			return
		}
		if body, err = who.session.open(body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		sealed = true
	}
	if len(body) == 0 && r.Header.Get("Authorization") != "" { // a client's way to log on before it sends anything
		w.WriteHeader(http.StatusOK)
		return
	}
	if !sealed && r.TLS == nil && !s.allowUnencrypted() {
		s.refuse(w, "")
		return
	}
	status, answer := s.answer(r.Context(), who.user, body)
	contentType := "application/soap+xml;charset=UTF-8"
	if sealed {
		answer, contentType = who.session.seal(answer), sealedType
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

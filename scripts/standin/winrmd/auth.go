package winrmd

import (
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
)

// connKey is the context key of a connection's *conn.
type connKey struct{}

// conn is what NTLM knows about one connection. Requests on an HTTP/1.1
// connection come one after the other; the mutex orders their memory accesses.
type conn struct {
	mu        sync.Mutex
	challenge *challenge
	user      string
	session   *session
}

// identity is who sent a request, and for NTLM the keys of the connection.
type identity struct {
	user    string
	session *session
}

// authenticate finds out who sent r. Where it returns false it has answered.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request) (identity, bool) {
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch strings.ToLower(scheme) {
	case "basic":
		user, password, ok := r.BasicAuth()
		if ok && s.basic() && (r.TLS != nil || s.allowUnencrypted()) && s.knows(user, password) {
			return identity{user: localName(user)}, true
		}
	case "negotiate", "ntlm":
		return s.negotiate(w, r, scheme, value)
	case "":
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.session != nil {
				return identity{c.user, c.session}, true
			}
		}
	}
	s.refuse(w, "")
	return identity{}, false
}

// negotiate goes one step further in the NTLM handshake of r's connection.
func (s *Server) negotiate(w http.ResponseWriter, r *http.Request, scheme, value string) (identity, bool) {
	c, ok := r.Context().Value(connKey{}).(*conn)
	message, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if !ok || err != nil {
		s.refuse(w, "")
		return identity{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch messageType(message) {
	case typeNegotiate:
		c.user, c.session = "", nil
		c.challenge = newChallenge(message, s.computerName())
		s.refuse(w, scheme+" "+base64.StdEncoding.EncodeToString(c.challenge.message))
		return identity{}, false
	case typeAuthenticate:
		ch := c.challenge
		c.challenge = nil // a challenge answers once
		if ch != nil {
			if user, session, err := ch.verify(message, s.Accounts); err == nil {
				c.user, c.session = user, session
				return identity{user, session}, true
			}
		}
	}
	s.refuse(w, "")
	return identity{}, false
}

// refuse answers 401; challenge is the handshake's next message, if there is one.
func (s *Server) refuse(w http.ResponseWriter, challenge string) {
	if challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	} else {
		w.Header().Add("WWW-Authenticate", "Negotiate")
		if s.basic() {
			w.Header().Add("WWW-Authenticate", `Basic realm="WSMAN"`)
		}
	}
	w.WriteHeader(http.StatusUnauthorized)
}

// knows checks a password in clear.
func (s *Server) knows(user, password string) bool {
	want, ok := s.Accounts(localName(user))
	return ok && want == password
}

// localName strips the domain of DOMAIN\user and .\user.
func localName(user string) string {
	if _, name, ok := strings.Cut(user, `\`); ok {
		return name
	}
	return user
}

// discardLog is the log of the HTTP server: clients' broken connections are
// what this server is tested with, not news.
func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

package winrm

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bodgit/ntlmssp"

	"github.com/wbox-dev/wbox/builder/guest"
)

// sealed is HTTP with NTLM, every message encrypted with the log-on's keys. Since
// NTLM belongs to a TCP connection and its cipher to the order of messages on it,
// each connection is a channel of its own that one request at a time uses.
//
// The keys come from the password: a stranger on the port can neither read a
// command nor make up an answer.
type sealed struct {
	cfg Config
	url string

	mu     sync.Mutex
	free   []*channel
	closed bool
}

func newSealed(cfg Config) *sealed {
	return &sealed{cfg: cfg, url: newMessages(cfg).url}
}

// channel is one logged-on connection.
type channel struct {
	http    *http.Transport
	session *ntlmssp.SecuritySession
}

// errStale says that a channel's connection is gone. Nothing was sent.
var errStale = errors.New("the connection was closed")

func (s *sealed) newChannel() *channel {
	t := newHTTP(s.cfg)
	t.MaxConnsPerHost = 1
	dial, dialled := dialer(s.cfg), new(atomic.Bool)
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, errStale // a new connection would need a new log-on
		}
		return dial(ctx, network, addr)
	}
	return &channel{http: t}
}

func (s *sealed) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, ch := range s.free {
		ch.http.CloseIdleConnections()
	}
	s.free = nil
}

func (s *sealed) take() *channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		ch := s.free[n-1]
		s.free = s.free[:n-1]
		return ch
	}
	return nil
}

func (s *sealed) give(ch *channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		ch.http.CloseIdleConnections()
		return
	}
	s.free = append(s.free, ch)
}

func (s *sealed) post(ctx context.Context, message []byte) ([]byte, error) {
	for ch := s.take(); ch != nil; ch = s.take() {
		answer, err := s.use(ctx, ch, message)
		var p *postError
		if errors.Is(err, errStale) && errors.As(err, &p) && !p.sent {
			continue
		}
		return answer, err
	}
	ch := s.newChannel()
	if err := s.logOn(ctx, ch); err != nil {
		ch.http.CloseIdleConnections()
		return nil, &postError{err: err}
	}
	return s.use(ctx, ch, message)
}

// use posts one message over a logged-on channel and keeps the channel if it is
// still good.
func (s *sealed) use(ctx context.Context, ch *channel, message []byte) ([]byte, error) {
	body, err := wrap(ch.session, message)
	if err != nil {
		return nil, &postError{err: err}
	}
	req, sent, err := newRequest(ctx, s.url, sealedType, body)
	if err != nil {
		return nil, &postError{err: err}
	}
	resp, err := ch.http.RoundTrip(req)
	if err != nil {
		ch.http.CloseIdleConnections()
		return nil, &postError{sent: sent.Load(), err: err}
	}
	answer, err := readBody(resp)
	if err == nil && resp.StatusCode != http.StatusUnauthorized && strings.HasPrefix(resp.Header.Get("Content-Type"), "multipart/encrypted") {
		if answer, err = unwrap(ch.session, answer); err == nil {
			s.give(ch)
			return judge(resp.StatusCode, answer)
		}
	}
	ch.http.CloseIdleConnections()
	switch {
	case err != nil:
		return nil, &postError{sent: true, err: err}
	case resp.StatusCode == http.StatusOK:
		return nil, &postError{sent: true, err: errors.New("the answer is not encrypted")}
	}
	return judge(resp.StatusCode, nil)
}

// logOn goes through the NTLM handshake with empty requests.
func (s *sealed) logOn(ctx context.Context, ch *channel) error {
	domain, user := "", s.cfg.User
	if d, u, ok := strings.Cut(user, `\`); ok {
		domain, user = d, u
	}
	client, err := ntlmssp.NewClient(ntlmssp.SetUserInfo(user, string(s.cfg.Password)),
		ntlmssp.SetDomain(domain), ntlmssp.SetVersion(ntlmssp.DefaultVersion()))
	if err != nil {
		return err
	}
	var challenge []byte
	for range 2 {
		token, err := authenticate(client, challenge)
		if err != nil {
			return fmt.Errorf("logging on: %w", err)
		}
		req, _, err := newRequest(ctx, s.url, soapType, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Negotiate "+base64.StdEncoding.EncodeToString(token))
		resp, err := ch.http.RoundTrip(req)
		if err != nil {
			return err
		}
		if _, err := readBody(resp); err != nil {
			return err
		}
		switch {
		case challenge == nil && resp.StatusCode == http.StatusUnauthorized:
			if challenge = findChallenge(resp.Header); challenge == nil {
				return fmt.Errorf("the guest does not offer NTLM: %w", guest.ErrRefused)
			}
			if !offersSealing(challenge) {
				return fmt.Errorf("the guest does not offer encryption: %w", guest.ErrRefused)
			}
		case challenge != nil && resp.StatusCode == http.StatusOK:
			if ch.session = client.SecuritySession(); ch.session == nil {
				return fmt.Errorf("the guest does not offer encryption: %w", guest.ErrRefused)
			}
			return nil
		case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
			return refused(resp.StatusCode)
		default:
			return fmt.Errorf("logging on: the guest answered with HTTP status %d", resp.StatusCode)
		}
	}
	return errors.New("logging on: the guest asks again")
}

// findChallenge returns the guest's NTLM message, nil where there is none.
func findChallenge(h http.Header) []byte {
	for _, v := range h.Values("WWW-Authenticate") {
		if scheme, value, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Negotiate") {
			if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value)); err == nil {
				return b
			}
		}
	}
	return nil
}

// offersSealing says whether a challenge agrees to what encryption needs. Without
// this check, whoever answers could talk the library into sending plain text.
func offersSealing(challenge []byte) bool {
	const sign, seal, extended, strong, keyExchange = 1 << 4, 1 << 5, 1 << 19, 1 << 29, 1 << 30
	const all = sign | seal | extended | strong | keyExchange
	return len(challenge) >= 24 && binary.LittleEndian.Uint32(challenge[20:])&all == all
}

// authenticate makes the client's next message. The library panics on some
// challenges that no Windows sends; whoever sends them must not end this process.
func authenticate(client *ntlmssp.Client, challenge []byte) (token []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the NTLM challenge is malformed: %v", r)
		}
	}()
	return client.Authenticate(challenge, nil)
}

// The MIME form of encrypted messages (MS-WSMV 2.2.9.1).
const (
	sealedProtocol = "application/HTTP-SPNEGO-session-encrypted"
	sealedType     = `multipart/encrypted;protocol="` + sealedProtocol + `";boundary="Encrypted Boundary"`
	boundary       = "--Encrypted Boundary"
	octets         = "Content-Type: application/octet-stream\r\n"
	signatureSize  = 16
)

func wrap(session *ntlmssp.SecuritySession, message []byte) ([]byte, error) {
	cipher, signature, err := session.Wrap(message)
	if err != nil {
		return nil, fmt.Errorf("encrypting a message: %w", err)
	}
	if len(signature) != signatureSize { // the log-on agreed on neither signing nor sealing
		return nil, fmt.Errorf("the guest does not offer encryption: %w", guest.ErrRefused)
	}
	var b bytes.Buffer
	b.WriteString(boundary + "\r\n\tContent-Type: " + sealedProtocol + "\r\n")
	fmt.Fprintf(&b, "\tOriginalContent: type=%s;Length=%d\r\n%s\r\n\t%s", soapType, len(message), boundary, octets)
	b.Write(binary.LittleEndian.AppendUint32(nil, signatureSize))
	b.Write(signature)
	b.Write(cipher)
	b.WriteString(boundary + "--\r\n")
	return b.Bytes(), nil
}

func unwrap(session *ntlmssp.SecuritySession, body []byte) ([]byte, error) {
	_, rest, ok := bytes.Cut(body, []byte(octets))
	if ok {
		rest, ok = bytes.CutSuffix(rest, []byte(boundary+"--\r\n"))
	}
	if !ok || len(rest) < 4+signatureSize || binary.LittleEndian.Uint32(rest) != signatureSize {
		return nil, errors.New("the encrypted answer is malformed")
	}
	plain, err := session.Unwrap(rest[4+signatureSize:], rest[4:4+signatureSize])
	if err != nil {
		return nil, fmt.Errorf("decrypting the answer: %w", err)
	}
	return plain, nil
}

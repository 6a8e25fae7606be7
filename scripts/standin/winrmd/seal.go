package winrmd

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // NTLM is made of it
	"crypto/rc4" //nolint:gosec // NTLM is made of it
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// session holds the sealing keys of an authenticated connection, as the server
// sees them (MS-NLMP 3.4). Sequence numbers count the messages of a connection.
type session struct {
	flags uint32

	mu       sync.Mutex
	in, out  *rc4.Cipher
	inSign   []byte
	outSign  []byte
	inCount  uint32
	outCount uint32
}

func newSession(key []byte, flags uint32) (*session, error) {
	derive := func(key []byte, direction, purpose string) []byte {
		sum := md5.Sum(append(bytes.Clone(key), "session key to "+direction+" "+purpose+" key magic constant\x00"...)) //nolint:gosec // as above
		return sum[:]
	}
	const fromClient, fromServer = "client-to-server", "server-to-client"
	s := &session{flags: flags, inSign: derive(key, fromClient, "signing"), outSign: derive(key, fromServer, "signing")}
	short := key
	switch {
	case flags&flag128 != 0:
	case flags&flag56 != 0:
		short = key[:7]
	default:
		short = key[:5]
	}
	var err error
	if s.in, err = rc4.NewCipher(derive(short, fromClient, "sealing")); err != nil { //nolint:gosec // as above
		return nil, err
	}
	s.out, err = rc4.NewCipher(derive(short, fromServer, "sealing")) //nolint:gosec // as above
	return s, err
}

// signature is the 16 bytes that go before a sealed message.
func (s *session) signature(handle *rc4.Cipher, key []byte, count uint32, plain []byte) []byte {
	number := binary.LittleEndian.AppendUint32(nil, count)
	sum := hmacMD5(key, number, plain)[:8]
	if s.flags&flagKeyExchange != 0 {
		handle.XORKeyStream(sum, sum)
	}
	return append(append([]byte{1, 0, 0, 0}, sum...), number...)
}

// The MIME form of sealed messages (MS-WSMV 2.2.9.1).
const (
	sealedProtocol = "application/HTTP-SPNEGO-session-encrypted"
	sealedType     = `multipart/encrypted;protocol="` + sealedProtocol + `";boundary="Encrypted Boundary"`
	boundary       = "--Encrypted Boundary"
	octets         = "Content-Type: application/octet-stream\r\n"
)

func isSealed(contentType string) bool {
	return strings.HasPrefix(contentType, "multipart/encrypted") && strings.Contains(contentType, sealedProtocol)
}

// seal encrypts one answer.
func (s *session) seal(plain []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	sealed := make([]byte, len(plain))
	s.out.XORKeyStream(sealed, plain)
	signature := s.signature(s.out, s.outSign, s.outCount, plain)
	s.outCount++
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\r\n\tContent-Type: %s\r\n\tOriginalContent: type=application/soap+xml;charset=UTF-8;Length=%d\r\n%s\r\n\t%s",
		boundary, sealedProtocol, len(plain), boundary, octets)
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(signature))))
	b.Write(signature)
	b.Write(sealed)
	b.WriteString(boundary + "--\r\n")
	return b.Bytes()
}

var errSealed = errors.New("the sealed message is damaged") //nolint:gochecknoglobals // a sentinel

// open decrypts one request. Its length comes from its end, never from a search
// in encrypted bytes.
func (s *session) open(body []byte) ([]byte, error) {
	_, rest, ok := bytes.Cut(body, []byte(octets))
	if !ok {
		return nil, errSealed
	}
	rest, ok = bytes.CutSuffix(rest, []byte(boundary+"--\r\n"))
	if !ok || len(rest) < 20 || binary.LittleEndian.Uint32(rest) != 16 {
		return nil, errSealed
	}
	got, sealed := rest[4:20], rest[20:]
	s.mu.Lock()
	defer s.mu.Unlock()
	plain := make([]byte, len(sealed))
	s.in.XORKeyStream(plain, sealed)
	want := s.signature(s.in, s.inSign, s.inCount, plain)
	if !hmac.Equal(got, want) {
		return nil, errSealed
	}
	s.inCount++
	return plain, nil
}

package winrmd

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // NTLM is made of it
	"crypto/rand"
	"crypto/rc4" //nolint:gosec // NTLM is made of it
	"encoding/binary"
	"errors"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/crypto/md4" //nolint:staticcheck,gosec // NTLM is made of it
)

// The messages and flags of MS-NLMP that are used here.
const (
	typeNegotiate    = 1
	typeChallenge    = 2
	typeAuthenticate = 3

	flagUnicode         = 1 << 0
	flagRequestTarget   = 1 << 2
	flagSign            = 1 << 4
	flagSeal            = 1 << 5
	flagNTLM            = 1 << 9
	flagAlwaysSign      = 1 << 15
	flagTargetServer    = 1 << 17
	flagExtendedSession = 1 << 19
	flagTargetInfo      = 1 << 23
	flagVersion         = 1 << 25
	flag128             = 1 << 29
	flagKeyExchange     = 1 << 30
	flag56              = 1 << 31
)

const ntlmSignature = "NTLMSSP\x00"

// messageType returns the type of an NTLM message, 0 where it is none.
func messageType(m []byte) uint32 {
	if len(m) < 12 || string(m[:8]) != ntlmSignature {
		return 0
	}
	return binary.LittleEndian.Uint32(m[8:])
}

// challenge is a handshake that waits for the client's last message.
type challenge struct {
	negotiate []byte // the client's first message
	message   []byte // what we sent
	nonce     [8]byte
	flags     uint32
}

// newChallenge answers a type 1 message.
func newChallenge(negotiate []byte, computer string) *challenge {
	c := &challenge{negotiate: bytes.Clone(negotiate)}
	_, _ = rand.Read(c.nonce[:])
	asked := uint32(0)
	if len(negotiate) >= 16 {
		asked = binary.LittleEndian.Uint32(negotiate[12:])
	}
	c.flags = flagUnicode | flagRequestTarget | flagNTLM | flagAlwaysSign | flagTargetServer | flagExtendedSession |
		flagTargetInfo | flagVersion | asked&(flagSign|flagSeal|flag128|flagKeyExchange|flag56)

	name := encodeUTF16(computer)
	var info bytes.Buffer
	pair := func(id uint16, value []byte) {
		_ = binary.Write(&info, binary.LittleEndian, [2]uint16{id, uint16(len(value))})
		info.Write(value)
	}
	pair(2, name) // domain, which on a stand-alone server is its name
	pair(1, name) // computer
	pair(4, encodeUTF16(strings.ToLower(computer)))
	pair(3, encodeUTF16(strings.ToLower(computer)))
	var now [8]byte
	binary.LittleEndian.PutUint64(now[:], filetime(time.Now()))
	pair(7, now[:]) // a timestamp makes the client send a MIC
	pair(0, nil)

	const header = 56
	var m bytes.Buffer
	m.WriteString(ntlmSignature)
	write := func(v any) { _ = binary.Write(&m, binary.LittleEndian, v) }
	write(uint32(typeChallenge))
	write([2]uint16{uint16(len(name)), uint16(len(name))})
	write(uint32(header))
	write(c.flags)
	m.Write(c.nonce[:])
	write(uint64(0))
	write([2]uint16{uint16(info.Len()), uint16(info.Len())})
	write(uint32(header + len(name)))
	m.Write([]byte{10, 0, 0x7c, 0x4f, 0, 0, 0, 15}) // version 10.0.20348, NTLM revision 15
	m.Write(name)
	m.Write(info.Bytes())
	c.message = m.Bytes()
	return c
}

var errLogon = errors.New("log-on refused") //nolint:gochecknoglobals // a sentinel

// verify checks a type 3 message and returns the user and the connection's keys.
func (c *challenge) verify(m []byte, accounts func(string) (string, bool)) (string, *session, error) {
	if len(m) < 64 || messageType(m) != typeAuthenticate {
		return "", nil, errLogon
	}
	field := func(at int) []byte {
		n, offset := int(binary.LittleEndian.Uint16(m[at:])), int64(binary.LittleEndian.Uint32(m[at+4:]))
		if offset+int64(n) > int64(len(m)) {
			return nil
		}
		return m[offset : int(offset)+n]
	}
	response, domain, user := field(20), decodeUTF16(field(28)), decodeUTF16(field(36))
	encrypted := field(52)
	flags := binary.LittleEndian.Uint32(m[60:]) & c.flags
	password, ok := accounts(user)
	if !ok || len(response) < 16+28 {
		return "", nil, errLogon
	}
	v2 := hmacMD5(md4Sum(encodeUTF16(password)), encodeUTF16(strings.ToUpper(user)+domain))
	proof := hmacMD5(v2, c.nonce[:], response[16:])
	if !hmac.Equal(proof, response[:16]) {
		return "", nil, errLogon
	}
	key := hmacMD5(v2, proof) // session base key, which NTLMv2 takes as key exchange key
	if flags&flagKeyExchange != 0 {
		if len(encrypted) != 16 {
			return "", nil, errLogon
		}
		exported := make([]byte, 16)
		cipher, err := rc4.NewCipher(key) //nolint:gosec // as above
		if err != nil {
			return "", nil, err
		}
		cipher.XORKeyStream(exported, encrypted)
		key = exported
	}
	if micPromised(response[16:]) && !c.micRight(m, key) {
		return "", nil, errLogon
	}
	s, err := newSession(key, flags)
	return user, s, err
}

// micPromised reads from the target info in an NTLMv2 response whether the
// client says that its message carries an integrity code.
func micPromised(blob []byte) bool {
	for rest := blob[28:]; len(rest) >= 4; {
		id, n := binary.LittleEndian.Uint16(rest), int(binary.LittleEndian.Uint16(rest[2:]))
		if id == 0 || len(rest) < 4+n {
			return false
		}
		if id == 6 && n == 4 {
			return binary.LittleEndian.Uint32(rest[4:])&2 != 0
		}
		rest = rest[4+n:]
	}
	return false
}

// micRight checks the integrity code over the three messages.
func (c *challenge) micRight(m, key []byte) bool {
	const at = 72
	if len(m) < at+16 {
		return false
	}
	zeroed := bytes.Clone(m)
	clear(zeroed[at : at+16])
	return hmac.Equal(hmacMD5(key, c.negotiate, c.message, zeroed), m[at:at+16])
}

func hmacMD5(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(md5.New, key)
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

func md4Sum(b []byte) []byte {
	h := md4.New()
	h.Write(b)
	return h.Sum(nil)
}

func encodeUTF16(s string) []byte {
	units := utf16.Encode([]rune(s))
	b := make([]byte, 0, 2*len(units))
	for _, u := range units {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

func decodeUTF16(b []byte) string {
	units := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		units = append(units, binary.LittleEndian.Uint16(b))
	}
	return string(utf16.Decode(units))
}

// filetime is t in 100 ns since 1601.
func filetime(t time.Time) uint64 { return uint64(t.UnixNano()/100) + 116444736000000000 }

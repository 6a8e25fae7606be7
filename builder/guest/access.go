package guest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"os"
	"strings"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
)

// BakeAccount is the account that a bake works with inside the guest, and
// CertificateName the common name of its WinRM certificate.
const (
	BakeAccount     = "wbox-bake"
	CertificateName = "wbox-guest"
)

// Access is how a bake gets into its guests: an account, and the certificate
// that the guest's WinRM shows. It is made once per installed Windows, kept
// beside that layer's result, and taken out of the guest when a box is sealed.
// It prints as its user's name only.
type Access struct {
	User        string
	Password    string
	PFX         []byte   // certificate and key for the guest, PKCS#12
	PFXPassword string   // of PFX
	Pin         [32]byte // SHA-256 of the certificate's DER form, for the client
}

// Format implements fmt.Formatter for every verb.
func (a Access) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "access of "+a.User) }

// LogValue implements slog.LogValuer.
func (a Access) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(a)) }

// NewAccess makes an account with a random password and a self-signed
// certificate that is valid from a day before now for ten years: a guest's
// clock may be wrong by a time zone.
//
// random feeds the password and the serial number; the key comes from the
// system's generator, which Go does not let anyone replace.
func NewAccess(random io.Reader, now time.Time) (Access, error) {
	a := Access{User: BakeAccount}
	var err error
	if a.Password, err = newPassword(random); err != nil {
		return Access{}, err
	}
	if a.PFXPassword, err = newPassword(random); err != nil {
		return Access{}, err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return Access{}, fmt.Errorf("making the guest's key: %w", err)
	}
	serial := make([]byte, 16)
	if _, err := io.ReadFull(random, serial); err != nil {
		return Access{}, fmt.Errorf("reading random bytes: %w", err)
	}
	serial[0] = serial[0]&0x7f | 0x40 // positive and of full length
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(serial),
		Subject:               pkix.Name{CommonName: CertificateName},
		NotBefore:             now.Add(-24 * time.Hour).UTC().Truncate(time.Second),
		NotAfter:              now.AddDate(10, 0, 0).UTC().Truncate(time.Second),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, // a WinRM listener takes no other
		DNSNames:              []string{CertificateName},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Access{}, fmt.Errorf("making the guest's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return Access{}, fmt.Errorf("making the guest's certificate: %w", err)
	}
	a.Pin = sha256.Sum256(der)
	// Old Windows builds read PKCS#12 in its old form only (3DES and SHA-1) and
	// call anything else a wrong password.
	if a.PFX, err = pkcs12.LegacyDES.Encode(key, certificate, nil, a.PFXPassword); err != nil {
		return Access{}, fmt.Errorf("packing the guest's certificate: %w", err)
	}
	return a, nil
}

// passwordLength is what the bake's passwords have; Windows asks for three of
// the four classes and no more than this gives.
const passwordLength = 24

// Characters that mean nothing to cmd.exe, PowerShell, XML, JSON or a URL, and
// no two that look alike.
const (
	upper   = "ABCDEFGHJKLMNPQRSTUVWXYZ"
	lower   = "abcdefghijkmnopqrstuvwxyz"
	digits  = "23456789"
	special = "-_."
)

// newPassword returns a password that begins with a letter and has characters of
// all four classes.
func newPassword(random io.Reader) (string, error) {
	const all = upper + lower + digits + special
	for {
		var b strings.Builder
		for b.Len() < passwordLength {
			var one [1]byte
			if _, err := io.ReadFull(random, one[:]); err != nil {
				return "", fmt.Errorf("reading random bytes: %w", err)
			}
			if i := int(one[0]) & 63; i < len(all) { // without the bias that % has
				b.WriteByte(all[i])
			}
		}
		p := b.String()
		if strings.ContainsAny(p[:1], upper+lower) && strings.ContainsAny(p, upper) && strings.ContainsAny(p, lower) &&
			strings.ContainsAny(p, digits) && strings.ContainsAny(p, special) {
			return p, nil
		}
	}
}

// accessFile is the stored form.
type accessFile struct {
	User        string `json:"user"`
	Password    string `json:"password"`
	PFX         []byte `json:"pfx"`
	PFXPassword string `json:"pfxPassword"`
	Pin         string `json:"certificateSHA256"`
}

// SaveAccess writes a to path, readable by the owner only.
func SaveAccess(ctx context.Context, path string, a Access) error {
	data, err := json.MarshalIndent(accessFile{a.User, a.Password, a.PFX, a.PFXPassword, hex.EncodeToString(a.Pin[:])}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the guest's access: %w", err)
	}
	if err := atomicfile.Write(ctx, path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the guest's access: %w", err)
	}
	return nil
}

// LoadAccess reads what SaveAccess wrote. Its errors show nothing of the content.
func LoadAccess(path string) (Access, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Access{}, fmt.Errorf("reading the guest's access: %w", err)
	}
	var f accessFile
	if json.Unmarshal(data, &f) != nil {
		return Access{}, fmt.Errorf("reading the guest's access: %s is not what was written there", path)
	}
	a := Access{User: f.User, Password: f.Password, PFX: f.PFX, PFXPassword: f.PFXPassword}
	pin, err := hex.DecodeString(f.Pin)
	if err != nil || len(pin) != len(a.Pin) || a.User == "" || a.Password == "" {
		return Access{}, errors.New("reading the guest's access: " + path + " is incomplete")
	}
	copy(a.Pin[:], pin)
	return a, nil
}

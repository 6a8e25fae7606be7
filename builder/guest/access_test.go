package guest_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/wbox-dev/wbox/builder/guest"
)

func TestNewAccess(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	a, err := guest.NewAccess(rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	if a.User != "wbox-bake" || a.Password == a.PFXPassword {
		t.Errorf("user %q, same passwords %v", a.User, a.Password == a.PFXPassword)
	}
	key, c, err := pkcs12.Decode(a.PFX, a.PFXPassword)
	if err != nil {
		t.Fatal(err)
	}
	if k, ok := key.(*rsa.PrivateKey); !ok || k.N.BitLen() != 2048 || !k.PublicKey.Equal(c.PublicKey) {
		t.Errorf("the key is a %T", key)
	}
	if c.Subject.CommonName != "wbox-guest" || !reflect.DeepEqual(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Errorf("subject %v, usage %v", c.Subject, c.ExtKeyUsage)
	}
	if !c.NotBefore.Equal(now.Add(-24*time.Hour)) || !c.NotAfter.Equal(now.AddDate(10, 0, 0)) {
		t.Errorf("valid from %v to %v", c.NotBefore, c.NotAfter)
	}
	if a.Pin != sha256.Sum256(c.Raw) {
		t.Error("the pin is not that of the certificate")
	}
	// The old form: 3DES with SHA-1 (1.2.840.113549.1.12.1.3), and no PBES2.
	if !bytes.Contains(a.PFX, []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x01, 0x03}) ||
		bytes.Contains(a.PFX, []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d}) {
		t.Error("the PFX is not in the old form")
	}
}

func TestPasswords(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		a, err := guest.NewAccess(rand.Reader, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{a.Password, a.PFXPassword} {
			var has [4]bool
			for _, r := range p {
				switch {
				case unicode.IsUpper(r):
					has[0] = true
				case unicode.IsLower(r):
					has[1] = true
				case unicode.IsDigit(r):
					has[2] = true
				case strings.ContainsRune("-_.", r):
					has[3] = true
				default:
					t.Errorf("%q has the character %q", p, r)
				}
			}
			if len(p) != 24 || has != [4]bool{true, true, true, true} || !unicode.IsLetter(rune(p[0])) || seen[p] {
				t.Errorf("the password %q, seen before: %v", p, seen[p])
			}
			seen[p] = true
		}
	}
	if _, err := guest.NewAccess(strings.NewReader("too little"), time.Now()); err == nil {
		t.Error("a source that ended made a password")
	}
}

func TestSaveAccess(t *testing.T) {
	a, err := guest.NewAccess(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "access.json")
	if err := guest.SaveAccess(t.Context(), path, a); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(path); err != nil || (runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600) {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if got, err := guest.LoadAccess(path); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("not the same after loading: %v", err)
	}
	for name, content := range map[string]string{"empty": "", "not JSON": a.Password, "no pin": `{"user":"x","password":"` + a.Password + `"}`,
		"short pin": `{"user":"x","password":"y","certificateSHA256":"00"}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := guest.LoadAccess(path); err == nil || strings.Contains(err.Error(), a.Password) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := guest.LoadAccess(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestAccessShowsNothing(t *testing.T) {
	a := guest.Access{User: "someone", Password: "c4n@ry", PFXPassword: "c4n@ry2", PFX: []byte("c4n@ry3")}
	s := guest.Secret("c4n@ry4")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "a", a, "s", s, "p", &a)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%q", "%x"} {
		fmt.Fprintf(&log, verb+verb+verb, a, s, struct {
			A []guest.Access
			S guest.Secret
		}{[]guest.Access{a}, s})
	}
	for _, form := range []string{"c4n@ry", fmt.Sprintf("%x", "c4n@ry"), "YzRuQHJ5"} {
		if strings.Contains(log.String(), form) {
			t.Errorf("printing shows %q: %s", form, log.String())
		}
	}
}

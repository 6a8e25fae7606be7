package fetch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// Checksums is what a checksum file says: one SHA-256 a name.
type Checksums struct {
	entries []checksum
}

type checksum struct {
	name   string // empty for a bare hash
	digest string // "sha256:…"
	line   int    // from 1
}

var (
	bsdLine   = regexp.MustCompile(`^([A-Za-z0-9/-]+) ?\((.+)\) ?= ?([0-9A-Fa-f]+)$`)
	gnuLine   = regexp.MustCompile(`^(\\?)([0-9A-Fa-f]{8,})(?:[ \t]+\*?(.+))?$`)
	otherSums = []int{32, 40, 56, 96, 128} // digits of MD5, SHA-1, SHA-224, SHA-384, SHA-512
)

const sha256Digits = 64

// maxChecksums bounds a checksum file, in bytes: those of whole distributions
// are smaller.
const maxChecksums = 4 << 20

// ParseChecksums reads a checksum file in any of the forms that are met in
// practice: those of GNU's and BSD's programs, a bare hash, clear-signed with
// PGP (the signature is not checked), with comments, either line ending, a
// byte order mark, or in UTF-16 as PowerShell writes it. Checksums of other
// algorithms are left out. Errors name the line.
func ParseChecksums(data []byte) (Checksums, error) {
	var out Checksums
	if len(data) > maxChecksums {
		return out, fmt.Errorf("the checksum file has more than %d bytes", maxChecksums)
	}
	text, err := decode(data)
	if err != nil {
		return out, err
	}
	var pgp pgpState
	for i, raw := range strings.Split(text, "\n") {
		line, ok := pgp.content(strings.TrimRight(raw, "\r \t"))
		if !ok || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		entry, use, err := parseLine(strings.TrimLeft(line, " \t"))
		if err != nil {
			return Checksums{}, fmt.Errorf("line %d of the checksum file %w", i+1, err)
		}
		if !use {
			continue
		}
		entry.line = i + 1
		out.entries = append(out.entries, entry)
	}
	return out, out.check()
}

// decode gives the text in UTF-8.
func decode(data []byte) (string, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), nil
	}
	data = data[2:]
	if len(data)%2 != 0 {
		return "", errors.New("the checksum file is in UTF-16 and cut off")
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

// pgpState takes the signed text out of a clear-signed file.
type pgpState int

const (
	pgpNone      pgpState = iota // no PGP, or in its text
	pgpHeaders                   // between the first line and the empty one
	pgpText                      // the signed text
	pgpSignature                 // the signature
)

func (s *pgpState) content(line string) (string, bool) {
	switch {
	case line == "-----BEGIN PGP SIGNED MESSAGE-----":
		*s = pgpHeaders
		return "", false
	case line == "-----BEGIN PGP SIGNATURE-----":
		*s = pgpSignature
		return "", false
	case line == "-----END PGP SIGNATURE-----":
		*s = pgpNone
		return "", false
	case *s == pgpHeaders:
		if line == "" {
			*s = pgpText
		}
		return "", false
	case *s == pgpSignature:
		return "", false
	case *s == pgpText:
		return strings.TrimPrefix(line, "- "), true
	}
	return line, true
}

// parseLine reads one line; use is false for another algorithm's.
func parseLine(line string) (c checksum, use bool, err error) {
	if m := bsdLine.FindStringSubmatch(line); m != nil {
		if a := strings.ToUpper(strings.ReplaceAll(m[1], "-", "")); a != "SHA256" && a != "SHA2256" {
			return c, false, nil
		}
		return newChecksum(m[2], m[3])
	}
	m := gnuLine.FindStringSubmatch(line)
	if m == nil {
		return c, false, errors.New("is no checksum")
	}
	name := m[3]
	if m[1] != "" { // GNU marks names in which it escapes characters
		name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
	}
	if slices.Contains(otherSums, len(m[2])) {
		return c, false, nil
	}
	return newChecksum(name, m[2])
}

func newChecksum(name, hex string) (checksum, bool, error) {
	if len(hex) != sha256Digits {
		return checksum{}, false, fmt.Errorf("has %d hexadecimal digits, and a SHA-256 has %d", len(hex), sha256Digits)
	}
	return checksum{name: clean(name), digest: "sha256:" + strings.ToLower(hex)}, true, nil
}

// clean makes names comparable.
func clean(name string) string {
	name = strings.ReplaceAll(strings.TrimSpace(name), `\`, "/")
	if name == "" {
		return ""
	}
	return path.Clean(name)
}

// check refuses two hashes for one name.
func (c Checksums) check() error {
	if len(c.entries) == 0 {
		return errors.New("the checksum file has no SHA-256")
	}
	first := map[string]checksum{}
	for _, e := range c.entries {
		f, ok := first[e.name]
		if ok && f.digest != e.digest {
			return fmt.Errorf("lines %d and %d of the checksum file differ about %q", f.line, e.line, e.name)
		}
		if !ok {
			first[e.name] = e
		}
	}
	return nil
}

// For returns the digest, "sha256:…", of the file called name: of the entry of
// that name, else of the only one whose last part is name's, else of a bare
// hash. The error lists what is there.
func (c Checksums) For(name string) (string, error) {
	name = clean(name)
	if name == "" {
		return "", errors.New("no name to look for in the checksum file")
	}
	var same []checksum
	for _, e := range c.entries {
		if e.name == name {
			return e.digest, nil
		}
		if e.name != "" && path.Base(e.name) == path.Base(name) {
			same = append(same, e)
		}
	}
	for _, e := range same {
		if e.digest != same[0].digest {
			return "", fmt.Errorf("lines %d and %d of the checksum file are both for a %s, in different folders", same[0].line, e.line, path.Base(name))
		}
	}
	if len(same) > 0 {
		return same[0].digest, nil
	}
	if len(c.entries) == 1 && c.entries[0].name == "" {
		return c.entries[0].digest, nil
	}
	var names []string
	for _, e := range c.entries[:min(len(c.entries), 8)] {
		names = append(names, fmt.Sprintf("%q", e.name))
	}
	return "", fmt.Errorf("the checksum file has nothing for %q; it has %s", name, strings.Join(names, ", "))
}

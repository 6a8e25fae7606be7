package fetch

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"
)

var (
	sumA = strings.Repeat("0123456789abcdef", 4)
	sumB = strings.Repeat("fedcba9876543210", 4)
)

func utf16LE(s string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return string(out)
}

func utf16BE(s string) string {
	out := []byte{0xfe, 0xff}
	for _, u := range utf16.Encode([]rune(s)) {
		out = binary.BigEndian.AppendUint16(out, u)
	}
	return string(out)
}

func TestChecksumForms(t *testing.T) {
	signed := "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# a comment: 7 bytes\nSHA256 (f.iso) = " + sumA +
		"\n- -----dashes\n"
	for _, c := range []struct{ name, data, want, err string }{
		{"GNU text", sumB + "  other\n" + sumA + "  f.iso\n", sumA, ""},
		{"GNU binary", sumA + " *f.iso\n", sumA, ""},
		{"one space", sumA + " f.iso\n", sumA, ""},
		{"a tab", sumA + "\tf.iso\n", sumA, ""},
		{"BSD", "SHA256 (f.iso) = " + sumA + "\n", sumA, ""},
		{"BSD with a dash", "SHA-256 (f.iso) = " + sumA + "\n", sumA, ""},
		{"PGP", strings.Replace(signed, "- -----dashes\n", "", 1) + "-----BEGIN PGP SIGNATURE-----\n\niQIzBAEBCAAdFiEE\n=abcd\n-----END PGP SIGNATURE-----\n", sumA, ""},
		{"PGP, what is no checksum inside", signed, "", "line 6 of the checksum file is no checksum"},
		{"comments", "# " + sumB + "  f.iso\n\n" + sumA + "  f.iso\n", sumA, ""},
		{"CRLF", sumB + "  other\r\n" + sumA + "  f.iso\r\n", sumA, ""},
		{"BOM", "\xef\xbb\xbf" + sumA + "  f.iso\n", sumA, ""},
		{"no final newline", sumA + "  f.iso", sumA, ""},
		{"upper case", strings.ToUpper(sumA) + "  f.iso\n", sumA, ""},
		{"bare", sumA + "\n", sumA, ""},
		{"folder", sumB + "  ./dir/other\n" + sumA + "  ./dir/f.iso\n", sumA, ""},
		{"Windows folder", sumA + " *dir\\f.iso\r\n", sumA, ""},
		{"the same twice", sumA + "  f.iso\n" + sumA + "  f.iso\n", sumA, ""},
		{"duplicate", sumA + "  f.iso\n" + sumB + "  f.iso\n", "", "lines 1 and 2 of the checksum file differ"},
		{"two folders", sumA + "  a/f.iso\n" + sumB + "  b/f.iso\n", "", "lines 1 and 2 of the checksum file are both for a f.iso"},
		{"too short", "# x\n" + sumA[:63] + "  f.iso\n", "", "line 2 of the checksum file has 63 hexadecimal digits"},
		{"BSD too long", "SHA256 (f.iso) = " + sumA + "0\n", "", "line 1 of the checksum file has 65 hexadecimal digits"},
		{"UTF-16", utf16LE(sumA + "  f.iso\r\n"), sumA, ""},
		{"UTF-16, the other way round", utf16BE(sumA + "  f.iso\r\n"), sumA, ""},
		{"UTF-16, cut", utf16LE(sumA + "  f.iso")[:41], "", "cut off"},
		{"two algorithms", sumA + sumB + "  f.iso\n" + sumA + "  f.iso\n", sumA, ""},
		{"two algorithms, BSD", "SHA512 (f.iso) = " + sumB + sumB + "\nMD5 (f.iso) = " + sumB[:32] + "\nSHA256 (f.iso) = " + sumA + "\n", sumA, ""},
		{"another algorithm only", sumA + sumB + "  f.iso\n", "", "no SHA-256"},
		{"escaped", "\\" + sumA + "  f.iso\n", sumA, ""},
		{"spaces in names", sumB + "  a b\n" + sumA + "  f.iso\n", sumA, ""},
		{"another name", sumA + "  g.iso\n", "", `nothing for "f.iso"; it has "g.iso"`},
		{"two bare", sumA + "\n" + sumB + "\n", "", "lines 1 and 2"},
		{"empty", "", "", "no SHA-256"},
		{"page", "<!DOCTYPE html>\n<html>", "", "line 1 of the checksum file is no checksum"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sums, err := ParseChecksums([]byte(c.data))
			got := ""
			if err == nil {
				got, err = sums.For("f.iso")
			}
			switch {
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want %q", err, c.err)
			case c.err == "" && got != "sha256:"+c.want:
				t.Errorf("got %s", got)
			}
		})
	}
}

func FuzzChecksumFile(f *testing.F) {
	for _, s := range []string{"", sumA + "  f\n", "SHA256 (f) = " + sumA, "\\" + sumA + " *a\\nb", "\xff\xfea", utf16LE(sumA + " f"),
		"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n" + sumA + "  f\n-----BEGIN PGP SIGNATURE-----\n\nxx\n-----END PGP SIGNATURE-----\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sums, err := ParseChecksums(data)
		if err != nil {
			return
		}
		for _, e := range sums.entries {
			if !digestPattern.MatchString(e.digest) || e.line < 1 {
				t.Fatalf("entry %+v", e)
			}
			if e.name == "" {
				continue
			}
			got, err := sums.For(e.name)
			if err != nil || got != e.digest {
				t.Fatalf("%q: %s, %v, want %s", e.name, got, err, e.digest)
			}
		}
	})
}

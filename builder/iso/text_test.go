package iso

import (
	"bytes"
	"testing"
)

// TestCRC takes the example of ECMA-167 3/7.2.6.
func TestCRC(t *testing.T) {
	if got := crc([]byte{0x70, 0x6a, 0x77}); got != 0x3299 {
		t.Errorf("crc = %#x, want 0x3299", got)
	}
}

func TestCompressedText(t *testing.T) {
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{nil, ""},
		{[]byte{8, 'a', 0xfc}, "aü"},
		{[]byte{16, 0, 'a', 0x65, 0xe5}, "a日"},
		{[]byte{16, 0, 'a', 0x65}, "a"}, // half a character
		{[]byte{16, 0xd8, 0x3d, 0xde, 0x00}, "😀"},
		{[]byte{7, 'a'}, ""},
	} {
		if got := compressed(c.in); got != c.want {
			t.Errorf("%v: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestDstring(t *testing.T) {
	field := make([]byte, 32)
	copy(field, "\x08WBOX  ")
	for length, want := range map[byte]string{0: "", 5: "WBOX", 3: "WB", 255: "WBOX"} {
		field[31] = length
		if got := dstring(field); got != want {
			t.Errorf("length %d: %q, want %q", length, got, want)
		}
	}
}

func TestUDFTimestamp(t *testing.T) {
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{[]byte{0x78, 0x10, 0xe6, 0x07, 3, 4, 14, 0, 5}, "2022-03-04T12:00:05Z"}, // +120 minutes
		{[]byte{0xd4, 0x1f, 0xe6, 0x07, 3, 4, 14, 0, 5}, "2022-03-04T14:44:05Z"}, // -44
		{[]byte{0x01, 0x18, 0xe6, 0x07, 3, 4, 14, 0, 5}, "2022-03-04T14:00:05Z"}, // -2047: not told
	} {
		if got := timestamp(append(c.in, 0, 0, 0)).Format("2006-01-02T15:04:05Z07:00"); got != c.want {
			t.Errorf("%v: %s, want %s", c.in, got, c.want)
		}
	}
}

func TestHeadLooksLike(t *testing.T) {
	for head, want := range map[string]string{
		"<!DOCTYPE html><html>":           html,
		"\xef\xbb\xbf\r\n <HTML lang=de>": html,
		"<!-- moved --><p>":               html,
		"404: not found":                  text,
		"{\"error\":\"expired\"}":         text,
		"PK\x03\x04\x14":                  "a ZIP archive",
		"\x1f\x8b\x08":                    "a gzip file",
		"MSWIM\x00\x00\x00":               "a WIM file",
		"QFI\xfb":                         "a qcow2 disk",
		string(make([]byte, 4096)):        zeros,
		"\x01\x02\x03binary":              "",
		"\xff\xfe\xfd\xfc":                "",
		"ein Fehler: n\xc3":               text, // the last character is cut in two
	} {
		if got := headLooksLike([]byte(head)); got != want {
			t.Errorf("%q: %q, want %q", bytes.TrimRight([]byte(head), "\x00"), got, want)
		}
	}
}

package iso

import (
	"encoding/binary"
	"unicode/utf16"
)

// dstring reads a field of fixed length (ECMA-167 1/7.2.12): compressed text,
// zeros, and the text's length in the last byte.
func dstring(field []byte) string {
	n := min(int(field[len(field)-1]), len(field)-1)
	return trimID(compressed(field[:n]))
}

// compressed reads OSTA compressed Unicode: a first byte of 8 or 16 tells how
// many bits a character has (UDF 1.02, 2.1.1). Anything else is no text.
func compressed(d []byte) string {
	if len(d) == 0 {
		return ""
	}
	switch d[0] {
	case 8:
		return latin1(d[1:])
	case 16:
		return utf16Text(d[1:], binary.BigEndian)
	}
	return ""
}

// utf16Text decodes UTF-16; an odd last byte is left out.
func utf16Text(d []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(d)/2)
	for i := range units {
		units[i] = order.Uint16(d[2*i:])
	}
	return string(utf16.Decode(units))
}

// latin1 decodes bytes that are the first 256 characters of Unicode.
func latin1(d []byte) string {
	runes := make([]rune, len(d))
	for i, b := range d {
		runes[i] = rune(b)
	}
	return string(runes)
}

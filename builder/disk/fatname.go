package disk

import "encoding/binary"

// longChars is how many characters of a long name one entry holds.
const longChars = 13

func longEntries(name string) int64 { return int64(len(name)+longChars-1) / longChars }

// dirEntry is a directory entry with fixed times. short is an 8.3 name, padded
// to 11 bytes.
func dirEntry(short string, attr byte, cluster, size uint32) []byte {
	e := make([]byte, dirEntrySize)
	le := binary.LittleEndian
	copy(e, short)
	e[11] = attr
	for _, at := range []int{16, 18, 24} { // created, accessed, written
		le.PutUint16(e[at:], fatDate)
	}
	le.PutUint16(e[20:], uint16(cluster>>16))
	le.PutUint16(e[26:], uint16(cluster))
	le.PutUint32(e[28:], size)
	return e
}

// longNameEntries are the entries before a short one that carry its name in
// full, the last part first. Every name gets them: a short name alone would
// come out in capital letters.
func longNameEntries(name, short string) []byte {
	sum := shortSum([]byte(short))
	n := int(longEntries(name))
	var out []byte
	for i := n; i >= 1; i-- {
		e := make([]byte, dirEntrySize)
		e[0] = byte(i)
		if i == n {
			e[0] |= 0x40
		}
		e[11], e[13] = attrLongName, sum
		for c := range longChars {
			at := (i-1)*longChars + c
			char := uint16(0xffff) // behind the end
			switch {
			case at < len(name):
				char = uint16(name[at]) // ASCII
			case at == len(name):
				char = 0
			}
			binary.LittleEndian.PutUint16(e[longCharOffset(c):], char)
		}
		out = append(out, e...)
	}
	return out
}

// shortSum is the checksum by which a long name knows its short one.
func shortSum(short []byte) byte {
	var sum byte
	for _, c := range short {
		sum = (sum>>1 | sum<<7) + c
	}
	return sum
}

// longCharOffset is where an entry keeps a character: 5, 6 and 2 of them lie
// around the fields of a short entry.
func longCharOffset(i int) int {
	switch {
	case i < 5:
		return 1 + 2*i
	case i < 11:
		return 14 + 2*(i-5)
	}
	return 28 + 2*(i-11)
}

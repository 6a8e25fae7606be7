package iso

import (
	"encoding/binary"
	"unicode/utf16"
)

// head gives all sectors before the files.
func (p *plan) head(label string) []byte {
	d := make([]byte, int64(p.data)*sectorSize)
	at := func(sector uint32) []byte { return d[int64(sector)*sectorSize:] }
	for tree := range trees {
		copy(at(uint32(16+tree)), p.descriptor(tree, label))
		copy(at(p.table[tree][0]), p.pathTable(tree, binary.LittleEndian))
		copy(at(p.table[tree][1]), p.pathTable(tree, binary.BigEndian))
		for _, n := range p.folders[tree] {
			copy(at(n.sector[tree]), n.records(tree))
		}
	}
	copy(at(18), "\xffCD001\x01") // the terminator
	return d
}

// descriptor is a tree's volume descriptor (ECMA-119 8.4 and 8.5; Joliet).
func (p *plan) descriptor(tree int, label string) []byte {
	d := make([]byte, sectorSize)
	text := func(from, to int, s string) { copy(d[from:to], paddedText(tree, s, to-from)) }
	d[0] = byte(1 + tree)
	copy(d[1:], "CD001\x01")
	text(8, 40, "")
	text(40, 72, label)
	both32(d[80:], p.end)
	if tree == joliet {
		copy(d[88:], "%/E") // UCS-2 level 3
	}
	both16(d[120:], 1) // one volume in the set,
	both16(d[124:], 1) // and this is the first
	both16(d[128:], sectorSize)
	both32(d[132:], uint32(p.tables[tree]))
	binary.LittleEndian.PutUint32(d[140:], p.table[tree][0])
	binary.BigEndian.PutUint32(d[148:], p.table[tree][1])
	copy(d[156:], directoryRecord(tree, []byte{0}, p.folders[tree][0]))
	for _, f := range [][2]int{{190, 318}, {318, 446}, {446, 574}, {702, 739}, {739, 776}, {776, 813}} {
		text(f[0], f[1], "") // who published it and the like
	}
	text(574, 702, "WBOX")
	// Made, changed, ends (never: zeros), begins. Always the same, so that the
	// same files give the same seed.
	for i, when := range []string{"2020010100000000", "2020010100000000", "0000000000000000", "2020010100000000"} {
		copy(d[813+17*i:], when)
	}
	d[881] = 1
	return d
}

// paddedText fills a field of n bytes with text and spaces. An odd last byte
// of a Joliet field stays zero.
func paddedText(tree int, s string, n int) []byte {
	out := make([]byte, 0, n)
	if tree == plain {
		for out = append(out, s...); len(out) < n; {
			out = append(out, ' ')
		}
		return out
	}
	for _, u := range utf16.Encode([]rune(s)) {
		out = binary.BigEndian.AppendUint16(out, u)
	}
	for len(out)+2 <= n {
		out = binary.BigEndian.AppendUint16(out, ' ')
	}
	return out
}

// pathTable lists a tree's folders (ECMA-119 9.4).
func (p *plan) pathTable(tree int, order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}) []byte {
	var out []byte
	for _, n := range p.folders[tree] {
		name := n.name[tree]
		if n.parent == n {
			name = []byte{0}
		}
		out = append(out, byte(len(name)), 0)
		out = order.AppendUint32(out, n.sector[tree])
		out = order.AppendUint16(out, uint16(n.parent.number[tree]))
		out = append(out, name...)
		if len(name)%2 == 1 {
			out = append(out, 0)
		}
	}
	return out
}

// records gives a folder's directory records, filled up to whole sectors. No
// record crosses from one sector to the next.
func (n *seedNode) records(tree int) []byte {
	out := directoryRecord(tree, []byte{0}, n)
	out = append(out, directoryRecord(tree, []byte{1}, n.parent)...)
	for _, kid := range n.sorted(tree) {
		r := directoryRecord(tree, kid.name[tree], kid)
		if room := padding(int64(len(out))); int64(len(r)) > room && room > 0 {
			out = append(out, make([]byte, room)...)
		}
		out = append(out, r...)
	}
	return append(out, make([]byte, padding(int64(len(out))))...)
}

// directoryRecord follows ECMA-119 9.1.
func directoryRecord(tree int, name []byte, n *seedNode) []byte {
	length := 33 + len(name)
	d := make([]byte, length+length%2)
	d[0] = byte(len(d))
	both32(d[2:], n.sector[tree])
	if n.folder() {
		both32(d[10:], n.length[tree])
		d[25] = 2
	} else {
		both32(d[10:], uint32(n.file.Size))
	}
	copy(d[18:], []byte{120, 1, 1, 0, 0, 0, 0}) // 2020-01-01 00:00:00 UTC
	both16(d[28:], 1)
	d[32] = byte(len(name))
	copy(d[33:], name)
	return d
}

// both32 writes a number in both byte orders (ECMA-119 7.3.3).
func both32(d []byte, v uint32) {
	binary.LittleEndian.PutUint32(d, v)
	binary.BigEndian.PutUint32(d[4:], v)
}

// both16 does so for two bytes (ECMA-119 7.2.3).
func both16(d []byte, v uint16) {
	binary.LittleEndian.PutUint16(d, v)
	binary.BigEndian.PutUint16(d[2:], v)
}

package isotest

import "encoding/binary"

// wrap puts the volume descriptors of both file systems around a partition.
func (u UDF) wrap(data []byte) []byte {
	end := partition + len(data)/block // the second anchor's sector
	d := make([]byte, (end+1)*block)
	at := func(sector int) []byte { return d[sector*block : (sector+1)*block] }
	copy(at(16), emptyISO9660(u.Label, uint32(end+1), 21))
	copy(at(17), "\xffCD001\x01")
	for i, id := range []string{"BEA01", "NSR02", "TEA01"} {
		copy(at(18 + i)[1:], id+"\x01")
	}
	root := emptyRoot(21)
	copy(at(21), root)
	for _, first := range []int{32, 48} { // the descriptors and their copy
		u.sequence(at, first, len(data)/block)
	}
	for _, sector := range []int{256, end} {
		anchor := at(sector)[:512]
		binary.LittleEndian.PutUint32(anchor[16:], 16*block)
		binary.LittleEndian.PutUint32(anchor[20:], 32)
		binary.LittleEndian.PutUint32(anchor[24:], 16*block)
		binary.LittleEndian.PutUint32(anchor[28:], 48)
		putTag(anchor, 2, uint32(sector))
	}
	copy(d[partition*block:], data)
	return d
}

// Bridge gives a whole image around the bytes of a partition, whose first block
// is its file set descriptor.
func Bridge(label string, partition []byte) []byte {
	return UDF{Label: label}.wrap(append(partition[:len(partition):len(partition)], make([]byte, -len(partition)&(block-1))...))
}

// Partition gives the partition's bytes of an image.
func Partition(image []byte) []byte { return image[partition*block : len(image)-block] }

// Retag mends the checksums of all descriptors of a partition's bytes, so that
// a change to a descriptor gets past them.
func Retag(data []byte) {
	for at := 0; at+16 <= len(data); at += 4 {
		d := data[at:]
		switch id := binary.LittleEndian.Uint16(d); id {
		case 256, 257, 258, 261, 266:
			if n := 16 + int(binary.LittleEndian.Uint16(d[10:])); n <= len(d) && n > 16 {
				putTag(d[:n], id, binary.LittleEndian.Uint32(d[12:]))
			}
		}
	}
}

// sequence writes a volume descriptor sequence from a sector on.
func (u UDF) sequence(at func(int) []byte, first, blocks int) {
	le := binary.LittleEndian
	primary := at(first)[:512]
	dstring(primary[24:56], u.Label)
	putTag(primary, 1, uint32(first))
	part := at(first + 1)[:512]
	le.PutUint32(part[188:], partition)
	le.PutUint32(part[192:], uint32(blocks))
	putTag(part, 5, uint32(first+1))
	volume := at(first + 2)[:446]
	dstring(volume[84:212], u.Label)
	le.PutUint32(volume[212:], block)
	copy(volume[216:], "\x00*OSTA UDF Compliant\x00\x00\x00\x00\x02\x01")
	longAD(volume[248:], block, 0)
	le.PutUint32(volume[264:], 6) // bytes of the partition maps,
	le.PutUint32(volume[268:], 1) // of which there is one
	copy(volume[440:], []byte{1, 6, 1, 0, 0, 0})
	putTag(volume, 6, uint32(first+2))
	putTag(at(first + 3)[:512], 8, uint32(first+3))
}

func dstring(field []byte, s string) {
	n := copy(field[:len(field)-1], Compressed(s))
	field[len(field)-1] = byte(n)
}

// putTag completes a descriptor with its tag (ECMA-167 3/7.2), which covers
// all of d.
func putTag(d []byte, id uint16, location uint32) {
	le := binary.LittleEndian
	le.PutUint16(d, id)
	le.PutUint16(d[2:], 2) // ECMA-167, second edition
	d[4] = 0
	le.PutUint16(d[8:], crc(d[16:]))
	le.PutUint16(d[10:], uint16(len(d)-16))
	le.PutUint32(d[12:], location)
	var sum byte
	for _, b := range d[:16] {
		sum += b
	}
	d[4] = sum
}

// crc divides by x^16+x^12+x^5+1, bit by bit.
func crc(data []byte) uint16 {
	var rest uint32
	for i := range 8 * (len(data) + 2) {
		rest <<= 1
		if i < 8*len(data) {
			rest |= uint32(data[i/8] >> (7 - i%8) & 1)
		}
		if rest&0x10000 != 0 {
			rest ^= 0x11021
		}
	}
	return uint16(rest)
}

// emptyISO9660 is a primary volume descriptor whose root folder is at a sector.
func emptyISO9660(label string, total, root uint32) []byte {
	d := make([]byte, block)
	copy(d, "\x01CD001\x01")
	copy(d[40:72], label+"                                ")
	both(d[80:], total)
	copy(d[128:], []byte{0, 8, 8, 0})
	copy(d[156:], emptyRoot(root)[:34])
	d[881] = 1
	return d
}

// emptyRoot is a folder that has nothing but itself and its parent.
func emptyRoot(sector uint32) []byte {
	d := make([]byte, 68)
	for i, r := range [][]byte{d[:34], d[34:]} {
		r[0], r[25], r[28], r[31], r[32], r[33] = 34, 2, 1, 1, 1, byte(i)
		both(r[2:], sector)
		both(r[10:], block)
	}
	return d
}

func both(d []byte, v uint32) {
	binary.LittleEndian.PutUint32(d, v)
	binary.BigEndian.PutUint32(d[4:], v)
}

package media

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// fixISO makes what genisoimage takes from the clock the same every time: the
// dates of the ISO 9660 volume descriptor, and in UDF (ECMA-167) the time
// stamps of descriptors and the volume set's identifier. Files' own times are
// those of the tree.
func fixISO(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := fixVolumes(file); err != nil {
		return errors.Join(fmt.Errorf("fixing time stamps: %w", err), file.Close())
	}
	return file.Close()
}

// lastDescriptor is the sector up to which descriptors lie on a medium with as
// few files as ours; the files' content follows.
const lastDescriptor = 1024

func fixVolumes(file *os.File) error {
	const sector = 2048
	b := make([]byte, sector)
	root := int64(0)
	for n := int64(16); n < lastDescriptor; n++ {
		if _, err := file.ReadAt(b, n*sector); err != nil {
			return err
		}
		switch {
		case n == 16:
			fixISO9660(b)
			root = int64(binary.LittleEndian.Uint32(b[158:])) // of the root folder's record, ECMA-119 8.4.18
		case n == root:
			fixRockRidge(b)
		case !fixUDF(b):
			continue
		}
		if _, err := file.WriteAt(b, n*sector); err != nil {
			return err
		}
	}
	return nil
}

// fixISO9660 sets the creation, modification, and effective date; ECMA-119
// 8.4.26 and following.
func fixISO9660(b []byte) {
	date := epoch.Format("20060102150405") + "00\x00"
	for _, at := range []int{813, 830, 864} {
		copy(b[at:], date)
	}
}

// fixRockRidge sets the times in a folder's "TF" entries (RRIP 4.1.6): seven
// bytes each, as many as the flags have bits.
func fixRockRidge(b []byte) {
	date := []byte{byte(epoch.Year() - 1900), byte(epoch.Month()), byte(epoch.Day()), 0, 0, 0, 0}
	for i := 0; i+5 < len(b); i++ {
		if string(b[i:i+2]) != "TF" || b[i+3] != 1 || i+int(b[i+2]) > len(b) {
			continue
		}
		for at := i + 5; at+len(date) <= i+int(b[i+2]); at += len(date) {
			copy(b[at:], date)
		}
	}
}

// fixUDF sets the time stamps of a descriptor and its checksums, and says
// whether the sector holds one.
func fixUDF(b []byte) bool {
	length := int(binary.LittleEndian.Uint16(b[10:]))
	if tagChecksum(b) != b[4] || length == 0 || 16+length > len(b) || crcITU(b[16:16+length]) != binary.LittleEndian.Uint16(b[8:]) {
		return false
	}
	var at []int
	switch binary.LittleEndian.Uint16(b) { // the tag identifiers of ECMA-167 3/7.2.1 and 4/7.2.1
	case 1: // primary volume: recording time, and the set's identifier after its length byte
		at = []int{376}
		copy(b[73:89], "57424f585354494e")
	case 9, 256: // logical volume integrity; file set
		at = []int{16}
	case 261: // file entry: access, modification, attribute time
		at = []int{72, 84, 96}
	default:
		return false
	}
	for _, offset := range at {
		copy(b[offset:], udfTime())
	}
	binary.LittleEndian.PutUint16(b[8:], crcITU(b[16:16+length]))
	b[4] = tagChecksum(b)
	return true
}

// udfTime is epoch as ECMA-167 1/7.3 writes it: type 1 (local time) with the
// offset 0.
func udfTime() []byte {
	b := make([]byte, 12)
	binary.LittleEndian.PutUint16(b, 1<<12)
	binary.LittleEndian.PutUint16(b[2:], uint16(epoch.Year()))
	b[4], b[5] = byte(epoch.Month()), byte(epoch.Day())
	return b
}

// tagChecksum adds up the 16 bytes of a descriptor tag but for the sum itself.
func tagChecksum(b []byte) byte {
	var sum byte
	for i, c := range b[:16] {
		if i != 4 {
			sum += c
		}
	}
	return sum
}

// crcITU is the CRC of descriptors: polynomial 0x1021, start 0.
func crcITU(b []byte) uint16 {
	var crc uint16
	for _, c := range b {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

package iso

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Descriptor tags of ECMA-167 (3/7.2.1 and 4/7.2.1).
const (
	tagAnchor            = 2
	tagPartition         = 5
	tagLogicalVolume     = 6
	tagTerminating       = 8
	tagFileSet           = 256
	tagFileIdentifier    = 257
	tagAllocationExtent  = 258
	tagFileEntry         = 261
	tagExtendedFileEntry = 266
)

// udf is a volume of UDF 1.02 (OSTA) as optical media have it: sectors and
// blocks of 2,048 bytes, one partition with a type 1 map.
type udf struct {
	src       io.ReaderAt
	size      int64
	label     string
	partition int64 // byte offset of the partition's first block
	length    int64 // its length in bytes
	end       int64 // where the partition ends
	rootICB   int64
}

func (u *udf) source() (io.ReaderAt, int64) { return u.src, u.size }
func (u *udf) root() (node, error)          { return u.node(u.rootICB) }
func (u *udf) load(e entry) (node, error)   { return u.node(e.icb) }

// readUDF reads the volume's descriptors. ErrNotISO means that there is no UDF
// at all; with any other error the volume is given as far as it could be read.
func readUDF(src io.ReaderAt, size int64) (*udf, error) {
	if !hasUDF(src, size) {
		return nil, ErrNotISO
	}
	u := &udf{src: src, size: size}
	anchor, err := u.descriptor(256*sectorSize, tagAnchor)
	if err != nil {
		return u, fmt.Errorf("reading the anchor: %w", err)
	}
	// The main sequence of volume descriptors and its copy.
	fileSet, err := u.sequence(binary.LittleEndian.Uint32(anchor[20:]))
	if err != nil {
		if fileSet, err = u.sequence(binary.LittleEndian.Uint32(anchor[28:])); err != nil {
			return u, fmt.Errorf("reading the volume descriptors: %w", err)
		}
	}
	set, err := u.descriptor(fileSet, tagFileSet)
	if err != nil {
		return u, fmt.Errorf("reading the file set: %w", err)
	}
	if u.rootICB, err = u.long(set[400:]); err != nil {
		return u, fmt.Errorf("reading the root folder's place: %w", err)
	}
	return u, nil
}

// hasUDF looks for the NSR descriptor in the volume recognition sequence,
// which begins at sector 16 (ECMA-167 2/8.3).
func hasUDF(src io.ReaderAt, size int64) bool {
	for sector := int64(16); sector < 64; sector++ {
		d, err := readAt(src, size, sector*sectorSize, 6)
		if err != nil {
			return false
		}
		switch string(d[1:]) {
		case "NSR02", "NSR03":
			return true
		case "CD001", "BEA01", "BOOT2", "TEA01", "CDW02":
		default:
			return false
		}
	}
	return false
}

// sequence reads the volume descriptors that begin at a sector, and gives the
// byte offset of the file set descriptor.
func (u *udf) sequence(first uint32) (fileSet int64, err error) {
	var volume, partition []byte
	for i := range int64(64) {
		d, err := readAt(u.src, u.size, (int64(first)+i)*sectorSize, sectorSize)
		if err != nil {
			return 0, err
		}
		tag, err := checkTag(d)
		if err != nil {
			return 0, err
		}
		switch tag {
		case tagPartition:
			partition = d
		case tagLogicalVolume:
			volume = d
		}
		if tag == tagTerminating {
			break
		}
	}
	if volume == nil || partition == nil {
		return 0, errors.New("there is no logical volume or no partition in them")
	}
	u.partition = int64(binary.LittleEndian.Uint32(partition[188:])) * sectorSize
	u.length = int64(binary.LittleEndian.Uint32(partition[192:])) * sectorSize
	u.end = u.partition + u.length
	u.label = dstring(volume[84:212])
	if b := binary.LittleEndian.Uint32(volume[212:]); b != sectorSize {
		return 0, fmt.Errorf("blocks of %d bytes are not supported", b)
	}
	if maps, kind := binary.LittleEndian.Uint32(volume[268:]), volume[440]; maps != 1 || kind != 1 {
		return 0, fmt.Errorf("%d partition maps of type %d are not supported, only UDF 1.02 as on Windows media", maps, kind)
	}
	return u.long(volume[248:])
}

// descriptor reads the descriptor at a byte offset, which must have the tag.
func (u *udf) descriptor(off int64, want uint16) ([]byte, error) {
	d, err := readAt(u.src, u.size, off, sectorSize)
	if err != nil {
		return nil, err
	}
	tag, err := checkTag(d)
	if err == nil && tag != want {
		err = fmt.Errorf("a descriptor of type %d is where %d should be", tag, want)
	}
	return d, err
}

// checkTag checks a descriptor's tag (ECMA-167 3/7.2) and gives its type.
func checkTag(d []byte) (uint16, error) {
	var sum byte
	for i, b := range d[:16] {
		if i != 4 {
			sum += b
		}
	}
	if sum != d[4] || binary.LittleEndian.Uint16(d) == 0 {
		return 0, errors.New("a descriptor's tag is damaged")
	}
	n := int(binary.LittleEndian.Uint16(d[10:]))
	if n <= len(d)-16 && crc(d[16:16+n]) != binary.LittleEndian.Uint16(d[8:]) {
		return 0, errors.New("a descriptor's content is damaged: its CRC differs")
	}
	return binary.LittleEndian.Uint16(d), nil
}

// crc is the CRC of ECMA-167 3/7.2.6: x^16+x^12+x^5+1, from 0.
func crc(data []byte) (sum uint16) {
	for _, b := range data {
		sum ^= uint16(b) << 8
		for range 8 {
			if sum&0x8000 != 0 {
				sum = sum<<1 ^ 0x1021
			} else {
				sum <<= 1
			}
		}
	}
	return sum
}

// block gives the byte offset of n bytes at a block of the partition.
func (u *udf) block(number uint32, n int64) (int64, error) {
	off := int64(number) * sectorSize
	if off > u.length || n > u.length-off {
		return 0, fmt.Errorf("block %d is outside the partition", number)
	}
	return u.partition + off, nil
}

// long gives the byte offset that a long allocation descriptor names.
func (u *udf) long(d []byte) (int64, error) {
	if ref := binary.LittleEndian.Uint16(d[8:]); ref != 0 {
		return 0, fmt.Errorf("partition %d is named and does not exist", ref)
	}
	return u.block(binary.LittleEndian.Uint32(d[4:]), sectorSize)
}

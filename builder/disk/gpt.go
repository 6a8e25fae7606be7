package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"unicode/utf16"
)

// sectorSize is that of every disk we make; QEMU's disks have no other.
const sectorSize = 512

// Attributes of a basic data partition, as Windows reads them (Microsoft,
// CREATE_PARTITION_PARAMETERS and GPT_BASIC_DATA_ATTRIBUTE_*).
const (
	AttrReadOnly      = uint64(1) << 60
	AttrHidden        = uint64(1) << 62
	AttrNoDriveLetter = uint64(1) << 63
)

// basicData is the type of partitions that hold a Windows file system.
const basicData = "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7"

// Partition is one entry of a GUID partition table.
type Partition struct {
	Number     int    // counted from 1, as Windows and sgdisk do
	Type       string // GUID in capital letters
	Name       string
	First      int64 // first sector
	Last       int64 // last sector, part of the partition
	Attributes uint64
}

// Offset returns where the partition begins, in bytes.
func (p Partition) Offset() int64 { return p.First * sectorSize }

// Size returns the partition's length in bytes.
func (p Partition) Size() int64 { return (p.Last - p.First + 1) * sectorSize }

// gptCopy is one of the two copies of a partition table, as raw bytes.
type gptCopy struct {
	sector  int64 // where the header lies
	header  []byte
	at      int64 // sector where the entries begin
	entries []byte
}

// gpt is a partition table whose two copies are sound and agree.
type gpt struct {
	copies     [2]gptCopy // primary, backup
	partitions []Partition
}

const (
	gptSignature  = "EFI PART"
	gptHeaderSize = 92
	gptEntrySize  = 128
	gptMaxEntries = 1024 // Windows writes 128
)

// readGPT reads and checks both copies of the partition table. readAt returns
// n bytes at a byte offset; diskSize is in bytes.
func readGPT(readAt func(offset int64, n int) ([]byte, error), diskSize int64) (*gpt, error) {
	sectors := diskSize / sectorSize
	if sectors < 68 {
		return nil, errors.New("the disk is too small for a partition table")
	}
	var g gpt
	sector := int64(1)
	for i := range g.copies {
		c, other, err := readGPTCopy(readAt, sector, sectors)
		if err != nil {
			return nil, fmt.Errorf("reading copy %d of the partition table: %w", i+1, err)
		}
		g.copies[i] = c
		if i == 1 && other != 1 {
			return nil, errors.New("the backup partition table belongs to another disk")
		}
		sector = other
	}
	if !bytes.Equal(g.copies[0].entries, g.copies[1].entries) {
		return nil, errors.New("the two copies of the partition table differ")
	}
	for i := range len(g.copies[0].entries) / gptEntrySize {
		p, used, err := parseEntry(g.copies[0].entries[i*gptEntrySize:][:gptEntrySize], i+1, sectors)
		if err != nil {
			return nil, err
		}
		if used {
			g.partitions = append(g.partitions, p)
		}
	}
	return &g, nil
}

func readGPTCopy(readAt func(int64, int) ([]byte, error), sector, sectors int64) (c gptCopy, other int64, err error) {
	if sector < 1 || sector >= sectors {
		return c, 0, fmt.Errorf("sector %d is not on the disk", sector)
	}
	h, err := readAt(sector*sectorSize, sectorSize)
	if err != nil {
		return c, 0, err
	}
	le := binary.LittleEndian
	if string(h[:8]) != gptSignature {
		return c, 0, errors.New("there is none")
	}
	if size := le.Uint32(h[12:]); size != gptHeaderSize {
		return c, 0, fmt.Errorf("the header has %d bytes, want %d", size, gptHeaderSize)
	}
	if le.Uint32(h[16:]) != headerSum(h) {
		return c, 0, errors.New("the header's checksum is wrong")
	}
	if le.Uint64(h[24:]) != uint64(sector) {
		return c, 0, errors.New("the header names another place as its own")
	}
	at, count, size := le.Uint64(h[72:]), le.Uint32(h[80:]), le.Uint32(h[84:])
	if size != gptEntrySize || count == 0 || count > gptMaxEntries || count%4 != 0 {
		return c, 0, fmt.Errorf("%d entries of %d bytes are not supported", count, size)
	}
	n := int(count * size)
	if at < 2 || at > uint64(sectors) || int64(at)+int64(n/sectorSize) > sectors {
		return c, 0, fmt.Errorf("entries at sector %d are not on the disk", at)
	}
	entries, err := readAt(int64(at)*sectorSize, n)
	if err != nil {
		return c, 0, err
	}
	if le.Uint32(h[88:]) != crc32.ChecksumIEEE(entries) {
		return c, 0, errors.New("the entries' checksum is wrong")
	}
	return gptCopy{sector, h, int64(at), entries}, int64(le.Uint64(h[32:])), nil
}

// headerSum is the checksum of a header, its own field taken as zero.
func headerSum(h []byte) uint32 {
	b := slices.Clone(h[:gptHeaderSize])
	clear(b[16:20])
	return crc32.ChecksumIEEE(b)
}

func parseEntry(e []byte, number int, sectors int64) (p Partition, used bool, err error) {
	if bytes.Equal(e[:16], make([]byte, 16)) {
		return p, false, nil
	}
	le := binary.LittleEndian
	first, last := le.Uint64(e[32:]), le.Uint64(e[40:])
	if first < 2 || last < first || last >= uint64(sectors) {
		return p, false, fmt.Errorf("partition %d reaches from sector %d to %d of %d", number, first, last, sectors)
	}
	name := make([]uint16, 0, 36)
	for i := 56; i < gptEntrySize; i += 2 {
		name = append(name, le.Uint16(e[i:]))
	}
	text, _, _ := strings.Cut(string(utf16.Decode(name)), "\x00")
	return Partition{Number: number, Type: guidString(e[:16]), Name: text,
		First: int64(first), Last: int64(last), Attributes: le.Uint64(e[48:])}, true, nil
}

// guidString prints a GUID, the first three fields of which are little-endian.
func guidString(b []byte) string {
	le := binary.LittleEndian
	return fmt.Sprintf("%08X-%04X-%04X-%X-%X", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:16])
}

// patch is bytes to be written at a byte offset.
type patch struct {
	offset int64
	data   []byte
}

// addAttributes sets attribute bits of a partition and returns what has to be
// written. The backup copy comes first: cut short anywhere, one copy is sound.
func (g *gpt) addAttributes(number int, bits uint64) []patch {
	le := binary.LittleEndian
	var out []patch
	for _, i := range []int{1, 0} {
		c := &g.copies[i]
		field := c.entries[(number-1)*gptEntrySize+48:]
		le.PutUint64(field, le.Uint64(field)|bits)
		le.PutUint32(c.header[88:], crc32.ChecksumIEEE(c.entries))
		le.PutUint32(c.header[16:], headerSum(c.header))
		out = append(out, patch{c.at * sectorSize, c.entries}, patch{c.sector * sectorSize, c.header})
	}
	return out
}

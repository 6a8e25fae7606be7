package disk

import (
	"encoding/binary"
	"errors"
	"strings"
)

// errNotFAT says that a partition holds something else than FAT32.
var errNotFAT = errors.New("no FAT32 file system")

// Fields of FAT32's directory entries (Microsoft, FAT32 File System
// Specification 1.03).
const (
	attrReadOnly = 0x01
	attrVolumeID = 0x08
	attrLongName = 0x0f
	attrArchive  = 0x20
	dirEntrySize = 32
)

// fatGeometry is what the boot sector says about a FAT32 volume, in sectors.
type fatGeometry struct {
	total, reserved, fats, perFAT, perCluster int64
	root                                      int64 // first cluster of the root directory
}

// parseBootSector returns errNotFAT for anything but FAT32 with sectors of
// 512 bytes. The numbers may still contradict the volume's size.
func parseBootSector(b []byte) (fatGeometry, error) {
	le := binary.LittleEndian
	g := fatGeometry{
		total: int64(le.Uint32(b[32:])), reserved: int64(le.Uint16(b[14:])), fats: int64(b[16]),
		perFAT: int64(le.Uint32(b[36:])), perCluster: int64(b[13]), root: int64(le.Uint32(b[44:])),
	}
	sound := b[510] == 0x55 && b[511] == 0xaa && le.Uint16(b[11:]) == sectorSize &&
		g.perCluster > 0 && g.perCluster&(g.perCluster-1) == 0 && g.reserved > 0 &&
		(g.fats == 1 || g.fats == 2) && le.Uint16(b[22:]) == 0 && g.perFAT > 0 && g.root >= 2
	if !sound {
		return fatGeometry{}, errNotFAT
	}
	return g, nil
}

// fatLabel returns the volume label of a FAT32 file system, as Windows shows
// it: the label entry of the root directory. Windows leaves "NO NAME" in the
// boot sector. Only the root directory's first cluster is searched, where a
// fresh volume has its label. readAt reads within the file system.
func fatLabel(readAt func(offset int64, n int) ([]byte, error)) (string, error) {
	b, err := readAt(0, sectorSize)
	if err != nil {
		return "", err
	}
	g, err := parseBootSector(b)
	if err != nil {
		return "", err
	}
	first := g.reserved + g.fats*g.perFAT + (g.root-2)*g.perCluster
	data, err := readAt(first*sectorSize, int(g.perCluster*sectorSize))
	if err != nil {
		return "", err
	}
	for ; len(data) >= dirEntrySize && data[0] != 0; data = data[dirEntrySize:] {
		attr := data[11]
		if data[0] != 0xe5 && attr&attrVolumeID != 0 && attr&0x3f != attrLongName {
			return strings.TrimRight(string(data[:11]), " "), nil
		}
	}
	return "", nil
}

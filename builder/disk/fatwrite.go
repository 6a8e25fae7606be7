package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// fatFile is one file of a volume's root directory.
type fatFile struct {
	name string // valid as validPayloadName says
	size int64
	copy func(w io.Writer) error // writes exactly size bytes
}

// fatVolume is a FAT32 volume to be written. Nothing but its fields decides
// the bytes: no clock, no random numbers.
type fatVolume struct {
	size   int64  // bytes, a multiple of 512
	hidden uint32 // sectors before the volume on its disk
	label  string
	id     uint32 // the volume's serial number
	files  []fatFile
}

// fatLayout says where the parts of a volume lie, in sectors.
type fatLayout struct {
	total, reserved, perFAT, perCluster int64
	clusters                            int64 // data clusters
}

const (
	minFAT32Clusters = 65525 // fewer make it FAT16, whatever the label says
	maxFATFile       = 1<<32 - 1
	fatEnd           = 0x0fffffff
	fatDate          = 1<<5 | 1 // 1980-01-01, the first date that FAT can tell
)

// errNoRoom says that the files don't fit into the volume.
var errNoRoom = errors.New("no room")

func layoutFAT(size int64) (fatLayout, error) {
	l := fatLayout{total: size / sectorSize, reserved: 32, perCluster: 8}
	if size <= 260<<20 {
		l.perCluster = 1 // as Windows and mkfs.fat choose
	}
	// Each FAT entry takes 4 bytes of both FATs and stands for one cluster.
	perEntry := l.perCluster*sectorSize + 8
	l.perFAT = (4*(l.total-l.reserved+2*l.perCluster) + perEntry - 1) / perEntry
	for (l.reserved+2*l.perFAT)%l.perCluster != 0 {
		l.reserved++ // clusters are aligned on the volume
	}
	l.clusters = (l.total - l.reserved - 2*l.perFAT) / l.perCluster
	if l.clusters < minFAT32Clusters || l.clusters+2 > l.perFAT*sectorSize/4 {
		return l, fmt.Errorf("a FAT32 volume of %d bytes can't be made", size)
	}
	return l, nil
}

func (l fatLayout) clusterBytes() int64 { return l.perCluster * sectorSize }

// need returns how many clusters n bytes take.
func (l fatLayout) need(n int64) int64 { return (n + l.clusterBytes() - 1) / l.clusterBytes() }

// at returns the byte offset of a cluster.
func (l fatLayout) at(cluster int64) int64 {
	return (l.reserved+2*l.perFAT)*sectorSize + (cluster-2)*l.clusterBytes()
}

// writeTo writes the volume's used parts to w, which reads as zeros elsewhere.
// Files that don't fit give an error that wraps errNoRoom, before any write.
func (v fatVolume) writeTo(w io.WriterAt) error {
	l, err := layoutFAT(v.size)
	if err != nil {
		return err
	}
	dir, starts, used, err := v.directory(l)
	if err != nil {
		return err
	}
	fat := make([]byte, l.perFAT*sectorSize)
	le := binary.LittleEndian
	le.PutUint32(fat, 0x0ffffff8) // the media type
	le.PutUint32(fat[4:], fatEnd) // cleanly unmounted, no errors
	chain := func(first, count int64) {
		for c := first; c < first+count; c++ {
			next := uint32(c + 1)
			if c == first+count-1 {
				next = fatEnd
			}
			le.PutUint32(fat[4*c:], next)
		}
	}
	chain(2, l.need(int64(len(dir))))
	for i, f := range v.files {
		chain(starts[i], l.need(f.size))
	}
	parts := []patch{{l.reserved * sectorSize, fat}, {(l.reserved + l.perFAT) * sectorSize, fat}, {l.at(2), dir}}
	for i, s := range [][]byte{v.bootSector(l), fatInfoSector(l.clusters-used, used+2), fatInfoEnd()} {
		parts = append(parts, patch{int64(i) * sectorSize, s}, patch{int64(i+6) * sectorSize, s})
	}
	for _, p := range parts {
		if _, err := w.WriteAt(p.data, p.offset); err != nil {
			return err
		}
	}
	for i, f := range v.files {
		out := io.NewOffsetWriter(w, l.at(starts[i]))
		if err := f.copy(out); err != nil {
			return fmt.Errorf("copying %s: %w", f.name, err)
		}
		if n, err := out.Seek(0, io.SeekCurrent); err != nil || n != f.size {
			return fmt.Errorf("copying %s: got %d bytes, want %d", f.name, n, f.size)
		}
	}
	return nil
}

// directory returns the root directory, the first cluster of each file and how
// many clusters are used in all.
func (v fatVolume) directory(l fatLayout) (dir []byte, starts []int64, used int64, err error) {
	entries := int64(1) // the label
	for _, f := range v.files {
		entries += 1 + longEntries(f.name)
	}
	used = l.need(entries * dirEntrySize)
	dir = append(dir, dirEntry(fmt.Sprintf("%-11s", v.label), attrVolumeID, 0, 0)...)
	taken := map[string]bool{}
	for _, f := range v.files {
		if f.size > maxFATFile {
			return nil, nil, 0, fmt.Errorf("%w: %s has %d bytes, FAT32 takes %d", errNoRoom, f.name, f.size, int64(maxFATFile))
		}
		start := used + 2
		if f.size == 0 {
			start = 0
		}
		short := shortName(f.name, taken)
		dir = append(dir, longNameEntries(f.name, short)...)
		dir = append(dir, dirEntry(short, attrReadOnly|attrArchive, uint32(start), uint32(f.size))...)
		starts = append(starts, used+2)
		used += l.need(f.size)
	}
	if used > l.clusters {
		return nil, nil, 0, fmt.Errorf("%w: the files take %d bytes, the volume has %d", errNoRoom,
			used*l.clusterBytes(), l.clusters*l.clusterBytes())
	}
	return dir, starts, used, nil
}

func (v fatVolume) bootSector(l fatLayout) []byte {
	b := make([]byte, sectorSize)
	le := binary.LittleEndian
	copy(b, "\xeb\x58\x90MSDOS5.0")
	le.PutUint16(b[11:], sectorSize)
	b[13] = byte(l.perCluster)
	le.PutUint16(b[14:], uint16(l.reserved))
	b[16] = 2 // FATs
	b[21] = 0xf8
	le.PutUint16(b[24:], 63) // sectors a track and heads, which nothing reads
	le.PutUint16(b[26:], 255)
	le.PutUint32(b[28:], v.hidden)
	le.PutUint32(b[32:], uint32(l.total))
	le.PutUint32(b[36:], uint32(l.perFAT))
	le.PutUint32(b[44:], 2) // the root directory's cluster
	le.PutUint16(b[48:], 1) // the info sector
	le.PutUint16(b[50:], 6) // the copy of this sector
	b[64], b[66] = 0x80, 0x29
	le.PutUint32(b[67:], v.id)
	copy(b[71:], fmt.Sprintf("%-11s", v.label))
	copy(b[82:], "FAT32   ")
	copy(b[90:], "\xcd\x18\xeb\xfe") // "no system here" to a BIOS that boots it
	b[510], b[511] = 0x55, 0xaa
	return b
}

func fatInfoSector(free, next int64) []byte {
	b := fatInfoEnd()
	le := binary.LittleEndian
	copy(b, "RRaA")
	copy(b[484:], "rrAa")
	le.PutUint32(b[488:], uint32(free))
	le.PutUint32(b[492:], uint32(next))
	return b
}

// fatInfoEnd is the third boot sector: a signature and nothing else.
func fatInfoEnd() []byte {
	b := make([]byte, sectorSize)
	b[510], b[511] = 0x55, 0xaa
	return b
}

// shortName makes a unique 8.3 name, as 11 padded bytes, and notes it.
func shortName(name string, taken map[string]bool) string {
	base, ext := strings.ToUpper(name), ""
	if i := strings.LastIndexByte(base, '.'); i >= 0 {
		base, ext = base[:i], base[i+1:]
	}
	plain := strings.NewReplacer(".", "", "-", "_").Replace(base)
	short := fmt.Sprintf("%-8s%-3s", plain, ext)
	for n := 1; len(plain) > 8 || len(ext) > 3 || taken[short]; n++ {
		suffix := fmt.Sprintf("~%d", n)
		short = fmt.Sprintf("%-8s%-3.3s", plain[:min(len(plain), 8-len(suffix))]+suffix, ext)
		if !taken[short] {
			break
		}
	}
	taken[short] = true
	return short
}

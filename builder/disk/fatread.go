package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
)

// Limits on what a volume may make us read.
const (
	maxFATBytes   = 64 << 20 // enough for 64 GiB with clusters of 4 KiB
	maxDirEntries = 4096
)

// fatReader reads the root directory of a FAT32 volume. Every number on the
// volume is checked before it is used.
type fatReader struct {
	r io.ReaderAt
	l fatLayout
	g fatGeometry
	t []byte // the first FAT
}

// fatEntry is a file of the root directory.
type fatEntry struct {
	name    string
	cluster int64
	size    int64
}

// openFAT reads a volume's boot sector and FATs, which must agree.
func openFAT(r io.ReaderAt, size int64) (*fatReader, error) {
	boot := make([]byte, sectorSize)
	if _, err := r.ReadAt(boot, 0); err != nil {
		return nil, err
	}
	g, err := parseBootSector(boot)
	if err != nil {
		return nil, err
	}
	l := fatLayout{total: g.total, reserved: g.reserved, perFAT: g.perFAT, perCluster: g.perCluster}
	l.clusters = (l.total - l.reserved - g.fats*l.perFAT) / l.perCluster
	if g.fats != 2 || l.total*sectorSize > size || l.clusters < 1 || l.perFAT*sectorSize > maxFATBytes ||
		l.clusters+2 > l.perFAT*sectorSize/4 {
		return nil, errors.New("the boot sector contradicts itself or the volume's size")
	}
	f := &fatReader{r: r, l: l, g: g, t: make([]byte, l.perFAT*sectorSize)}
	second := make([]byte, len(f.t))
	if _, err := r.ReadAt(f.t, l.reserved*sectorSize); err != nil {
		return nil, err
	}
	if _, err := r.ReadAt(second, (l.reserved+l.perFAT)*sectorSize); err != nil {
		return nil, err
	}
	if !bytes.Equal(f.t, second) {
		return nil, errors.New("the two FATs differ")
	}
	return f, nil
}

// chain returns a reader of size bytes in the clusters that start at first;
// the chain must have exactly the clusters that size takes.
func (f *fatReader) chain(first, size int64) (io.Reader, error) {
	left := f.l.need(size)
	if left > f.l.clusters {
		return nil, errors.New("the file is larger than the volume")
	}
	var parts []io.Reader
	for c := first; ; left-- {
		if left == 0 {
			if c < 0x0ffffff8 {
				return nil, errors.New("the cluster chain is longer than the file")
			}
			return io.LimitReader(io.MultiReader(parts...), size), nil
		}
		if c < 2 || c >= f.l.clusters+2 {
			return nil, fmt.Errorf("the cluster chain leads to cluster %d", c)
		}
		parts = append(parts, io.NewSectionReader(f.r, f.l.at(c), f.l.clusterBytes()))
		c = f.next(c)
	}
}

func (f *fatReader) next(cluster int64) int64 {
	return int64(binary.LittleEndian.Uint32(f.t[4*cluster:]) & 0x0fffffff)
}

// root returns the files of the root directory.
func (f *fatReader) root() ([]fatEntry, error) {
	var data []byte
	for c := f.g.root; c < 0x0ffffff8; c = f.next(c) {
		if c < 2 || c >= f.l.clusters+2 || len(data) > maxDirEntries*dirEntrySize {
			return nil, errors.New("the root directory has no end")
		}
		part := make([]byte, f.l.clusterBytes())
		if _, err := f.r.ReadAt(part, f.l.at(c)); err != nil {
			return nil, err
		}
		data = append(data, part...)
	}
	var out []fatEntry
	var long longName
	for ; len(data) >= dirEntrySize && data[0] != 0; data = data[dirEntrySize:] {
		e := data[:dirEntrySize]
		switch attr := e[11]; {
		case e[0] == 0xe5:
			long = longName{}
		case attr&0x3f == attrLongName:
			long.add(e)
		case attr&attrVolumeID != 0:
			long = longName{}
		case attr&0x10 != 0:
			return nil, fmt.Errorf("%q is a folder", e[:11])
		default:
			name, err := long.finish(e[:11])
			if err != nil {
				return nil, err
			}
			le := binary.LittleEndian
			out = append(out, fatEntry{name: name, size: int64(le.Uint32(e[28:])),
				cluster: int64(le.Uint16(e[20:]))<<16 | int64(le.Uint16(e[26:]))})
			long = longName{}
		}
	}
	return out, nil
}

// longName collects the entries before a short one.
type longName struct {
	chars []uint16
	next  byte // the number that the next entry must have
	sum   byte
	bad   bool
}

func (n *longName) add(e []byte) {
	number := e[0] & 0x3f
	if e[0]&0x40 != 0 {
		*n = longName{next: number, sum: e[13]}
	}
	if number == 0 || number != n.next || e[13] != n.sum {
		n.bad = true
		return
	}
	n.next--
	var part []uint16
	for c := range longChars {
		part = append(part, binary.LittleEndian.Uint16(e[longCharOffset(c):]))
	}
	n.chars = append(part, n.chars...)
}

// finish returns the name that belongs to a short one.
func (n *longName) finish(short []byte) (string, error) {
	if n.bad || n.next != 0 || len(n.chars) == 0 || n.sum != shortSum(short) {
		return "", fmt.Errorf("the long name of %q is broken", short)
	}
	for i, c := range n.chars {
		if c == 0 {
			return string(utf16.Decode(n.chars[:i])), nil
		}
	}
	return string(utf16.Decode(n.chars)), nil
}

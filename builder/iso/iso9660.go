package iso

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// iso9660 is what the volume descriptors of ECMA-119 say.
type iso9660 struct {
	primary *tree
	joliet  *tree // nil where there is none
	end     int64 // where the volume ends, a byte offset
}

// tree is one of the directory trees of an ISO 9660 volume.
type tree struct {
	src    io.ReaderAt
	size   int64
	id     string // the volume identifier
	block  int64  // bytes of a logical block
	joliet bool
	top    node
}

func (t *tree) source() (io.ReaderAt, int64) { return t.src, t.size }
func (t *tree) root() (node, error)          { return t.top, nil }
func (t *tree) load(e entry) (node, error)   { return e.node, nil }

// readISO9660 reads the descriptors from sector 16 on; ErrNotISO where there
// are none.
func readISO9660(src io.ReaderAt, size int64) (*iso9660, error) {
	v := &iso9660{}
	for sector := int64(16); sector < 80; sector++ {
		d, err := readAt(src, size, sector*sectorSize, sectorSize)
		if err != nil && sector > 16 {
			return nil, err
		}
		if err != nil || string(d[1:6]) != "CD001" {
			break
		}
		const primary, supplementary, terminator = 1, 2, 255
		switch kind := d[0]; {
		case kind == primary && v.primary == nil:
			if v.primary, err = readTree(src, size, d, false); err != nil {
				return nil, fmt.Errorf("reading the ISO 9660 volume descriptor: %w", err)
			}
			v.end = int64(binary.LittleEndian.Uint32(d[80:])) * v.primary.block
		case kind == supplementary && v.joliet == nil && isJoliet(d[88:91]):
			if v.joliet, err = readTree(src, size, d, true); err != nil {
				return nil, fmt.Errorf("reading the Joliet volume descriptor: %w", err)
			}
		}
		if d[0] == terminator {
			break
		}
	}
	if v.primary == nil {
		return nil, ErrNotISO
	}
	return v, nil
}

// isJoliet knows the escape sequences of UCS-2 levels 1 to 3 (Joliet, 2.2).
func isJoliet(escape []byte) bool {
	switch string(escape) {
	case "%/@", "%/C", "%/E":
		return true
	}
	return false
}

func readTree(src io.ReaderAt, size int64, d []byte, joliet bool) (*tree, error) {
	t := &tree{src: src, size: size, joliet: joliet, block: int64(binary.LittleEndian.Uint16(d[128:]))}
	switch t.block {
	case 512, 1024, 2048:
	default:
		return nil, fmt.Errorf("blocks of %d bytes do not exist", t.block)
	}
	t.id = trimID(t.text(d[40:72]))
	r, err := t.record(d[156:190])
	if err != nil {
		return nil, fmt.Errorf("reading the root folder's record: %w", err)
	}
	t.top = r.node
	t.top.folder = true
	return t, nil
}

func (t *tree) text(d []byte) string {
	if t.joliet {
		return utf16Text(d, binary.BigEndian)
	}
	return latin1(d)
}

// record is a directory record (ECMA-119 9.1).
type record struct {
	name string // empty for the folder itself and its parent
	more bool   // the file goes on in the next record
	node node
}

func (t *tree) record(d []byte) (record, error) {
	length := int(d[32])
	if 33+length > len(d) {
		return record{}, errors.New("a name reaches beyond its record")
	}
	const isFolder, notFinal = 2, 128
	name, flags := d[33:33+length], d[25]
	r := record{more: flags&notFinal != 0}
	if len(name) != 1 || name[0] > 1 {
		r.name = t.text(name)
		if i := strings.LastIndexByte(r.name, ';'); i > 0 && flags&isFolder == 0 {
			r.name = r.name[:i]
		}
		if len(r.name) > 1 {
			r.name = strings.TrimSuffix(r.name, ".")
		}
	}
	if d[26] != 0 || d[27] != 0 {
		return record{}, errors.New("interleaved files are not supported")
	}
	start := int64(binary.LittleEndian.Uint32(d[2:])) + int64(d[1]) // after the extended attributes
	n := int64(binary.LittleEndian.Uint32(d[10:]))
	r.node = node{id: start, folder: flags&isFolder != 0, size: n, modTime: recordTime(d[18:25])}
	if n > 0 {
		r.node.extents = []extent{{start * t.block, n}}
	}
	return r, nil
}

// list reads the records of a folder. A file of several extents has as many
// records, one after the other.
func (t *tree) list(folder node) ([]entry, error) {
	d, err := readFolder(folder, t.src, t.size)
	if err != nil {
		return nil, err
	}
	var out []entry
	more := false
	for at := 0; at < len(d); {
		length := int(d[at])
		if length == 0 { // records do not cross sectors
			at = (at/sectorSize + 1) * sectorSize
			continue
		}
		if length < 34 || at+length > len(d) {
			return nil, errors.New("a directory record is damaged")
		}
		r, err := t.record(d[at : at+length])
		if err != nil {
			return nil, err
		}
		at += length
		if r.name == "" {
			continue
		}
		if more && out[len(out)-1].name == r.name {
			last := &out[len(out)-1].node
			last.extents = append(last.extents, r.node.extents...)
			if last.size += r.node.size; last.size > t.size {
				return nil, fmt.Errorf("the file %q is larger than the image", r.name)
			}
		} else {
			out = append(out, entry{name: r.name, folder: r.node.folder, node: r.node})
		}
		more = r.more
	}
	return out, nil
}

// recordTime reads the seven bytes of ECMA-119 9.1.5.
func recordTime(d []byte) time.Time {
	t := time.Date(1900+int(d[0]), time.Month(d[1]), int(d[2]), int(d[3]), int(d[4]), int(d[5]), 0, time.UTC)
	return t.Add(-time.Duration(int8(d[6])) * 15 * time.Minute)
}

package iso

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// node reads the file entry at a byte offset (ECMA-167 4/14.9 and 4/14.17).
func (u *udf) node(icb int64) (node, error) {
	d, err := readAt(u.src, u.size, icb, sectorSize)
	if err != nil {
		return node{}, err
	}
	tag, err := checkTag(d)
	if err != nil {
		return node{}, err
	}
	// Where the two kinds of file entry have their fields.
	var modified, lengths int
	switch tag {
	case tagFileEntry:
		modified, lengths = 84, 168
	case tagExtendedFileEntry:
		modified, lengths = 92, 208
	default:
		return node{}, fmt.Errorf("a descriptor of type %d is where a file entry should be", tag)
	}
	if strategy := binary.LittleEndian.Uint16(d[20:]); strategy != 4 {
		return node{}, fmt.Errorf("ICB strategy %d is not supported", strategy)
	}
	n := node{id: icb, modTime: timestamp(d[modified:])}
	switch kind := d[27]; kind {
	case 4:
		n.folder = true
	case 0, 5: // 0 is "not told"
	default:
		return node{}, fmt.Errorf("files of type %d are not supported", kind)
	}
	size := binary.LittleEndian.Uint64(d[56:])
	if size > math.MaxInt64 || int64(size) > u.size {
		return node{}, fmt.Errorf("a file of %d bytes is larger than the image", size)
	}
	n.size = int64(size)
	start := int64(lengths) + 8 + int64(binary.LittleEndian.Uint32(d[lengths:]))
	length := int64(binary.LittleEndian.Uint32(d[lengths+4:]))
	if start > int64(len(d)) || length > int64(len(d))-start {
		return node{}, errors.New("a file entry's fields reach beyond it")
	}
	return n, u.allocate(&n, d[start:start+length], binary.LittleEndian.Uint16(d[34:])&7)
}

// allocate reads allocation descriptors of a form into n: 0 short, 1 long, 3
// for content that is embedded in their place.
func (u *udf) allocate(n *node, d []byte, form uint16) error {
	width := 8
	switch form {
	case 0:
	case 1:
		width = 16
	case 3:
		n.inline = append([]byte{}, d...)
		return nil
	default:
		return fmt.Errorf("allocation descriptors of form %d are not supported", form)
	}
	seen := map[uint32]bool{}
	for len(d) >= width {
		length, block := binary.LittleEndian.Uint32(d), binary.LittleEndian.Uint32(d[4:])
		kind, bytes := length>>30, int64(length&(1<<30-1))
		if width == 16 && bytes > 0 && kind != 2 && binary.LittleEndian.Uint16(d[8:]) != 0 {
			return errors.New("a file lies in a partition that does not exist")
		}
		d = d[width:]
		if bytes == 0 {
			break
		}
		if len(n.extents) == maxExtents {
			return fmt.Errorf("a file has more than %d extents", maxExtents)
		}
		switch kind {
		case 0:
			off, err := u.block(block, bytes)
			if err != nil {
				return err
			}
			n.extents = append(n.extents, extent{off, bytes})
		case 1, 2: // never recorded: it reads as zeros
			n.extents = append(n.extents, extent{-1, bytes})
		case 3: // the descriptors go on elsewhere
			if seen[block] {
				return errors.New("a file's descriptors lead in a circle")
			}
			seen[block] = true
			next, err := u.continuation(block)
			if err != nil {
				return err
			}
			d = next
		}
	}
	return nil
}

// continuation reads an allocation extent descriptor (ECMA-167 4/14.5).
func (u *udf) continuation(block uint32) ([]byte, error) {
	off, err := u.block(block, sectorSize)
	if err != nil {
		return nil, err
	}
	d, err := u.descriptor(off, tagAllocationExtent)
	if err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(d[20:]))
	if n > int64(len(d))-24 {
		return nil, errors.New("allocation descriptors reach beyond their block")
	}
	return d[24 : 24+n], nil
}

// list reads the file identifiers of a folder (ECMA-167 4/14.4).
func (u *udf) list(folder node) ([]entry, error) {
	d, err := readFolder(folder, u.src, u.size)
	if err != nil {
		return nil, err
	}
	var out []entry
	for len(d) >= 38 {
		name, use := int(d[19]), int(binary.LittleEndian.Uint16(d[36:]))
		length := (38 + use + name + 3) &^ 3
		if length > len(d) {
			return nil, errors.New("a name reaches beyond its folder")
		}
		if tag, err := checkTag(d[:length]); err != nil {
			return nil, err
		} else if tag != tagFileIdentifier {
			return nil, fmt.Errorf("a descriptor of type %d is where a name should be", tag)
		}
		const isFolder, deleted, parent = 2, 4, 8
		if flags := d[18]; flags&(deleted|parent) == 0 {
			icb, err := u.long(d[20:])
			if err != nil {
				return nil, err
			}
			out = append(out, entry{name: compressed(d[38+use : 38+use+name]), folder: flags&isFolder != 0, icb: icb})
		}
		d = d[length:]
	}
	return out, nil
}

// timestamp reads a timestamp of ECMA-167 1/7.3.
func timestamp(d []byte) time.Time {
	zone := int(int16(binary.LittleEndian.Uint16(d)<<4)) >> 4 // minutes, 12 bits with a sign
	if zone < -1440 || zone > 1440 {
		zone = 0 // -2047 is "not told"
	}
	year := int(int16(binary.LittleEndian.Uint16(d[2:])))
	t := time.Date(year, time.Month(d[4]), int(d[5]), int(d[6]), int(d[7]), int(d[8]), 0, time.UTC)
	return t.Add(-time.Duration(zone) * time.Minute)
}

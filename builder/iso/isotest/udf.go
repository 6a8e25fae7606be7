package isotest

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"
)

const (
	block     = 2048
	partition = 257 // the partition's first sector
)

// Form is how a file entry tells where its content is.
type Form uint16

// The forms of allocation descriptors (ECMA-167 4/14.6.8).
const (
	Short    Form = 0
	Long     Form = 1
	Embedded Form = 3
)

// File is a file of a UDF image.
type File struct {
	Path     string
	Data     []byte
	Form     Form
	Pieces   int  // how many extents to cut it into; 0 is 1
	Chain    bool // put all extents but the first into a block of their own
	Hole     int  // bytes of zeros at the end that are not recorded
	Extended bool // use an extended file entry
}

// UDF is a bridge disc of UDF 1.02 whose ISO 9660 side is empty.
type UDF struct {
	Label string
	Files []File
}

type udfNode struct {
	name string
	file *File // nil for a folder
	kids []*udfNode
	icb  uint32
}

// writer appends blocks to the partition.
type writer struct{ data []byte }

// alloc takes blocks for data and gives the first one's number.
func (w *writer) alloc(data []byte) uint32 {
	at := len(w.data) / block
	w.data = append(w.data, data...)
	w.data = append(w.data, make([]byte, -len(data)&(block-1))...)
	return uint32(at)
}

// Bytes gives the image.
func (u UDF) Bytes() []byte {
	root := &udfNode{}
	for i := range u.Files {
		root.add(strings.Split(u.Files[i].Path, "/"), &u.Files[i])
	}
	w := &writer{}
	set := w.alloc(make([]byte, block))
	w.node(root, nil)
	fileSet := make([]byte, 512)
	longAD(fileSet[400:], block, root.icb)
	putTag(fileSet, 256, set)
	copy(w.data, fileSet)
	return u.wrap(w.data)
}

func (n *udfNode) add(path []string, f *File) {
	i := slices.IndexFunc(n.kids, func(k *udfNode) bool { return k.name == path[0] })
	if i < 0 {
		n.kids = append(n.kids, &udfNode{name: path[0]})
		i = len(n.kids) - 1
	}
	if len(path) == 1 {
		n.kids[i].file = f
		return
	}
	n.kids[i].add(path[1:], f)
}

// node writes a node with all below it, and sets its icb.
func (w *writer) node(n, parent *udfNode) {
	n.icb = w.alloc(make([]byte, block))
	f := n.file
	if f == nil {
		up := n.icb
		if parent != nil {
			up = parent.icb
		}
		records := identifier("", up, 2|8)
		for _, kid := range n.kids {
			w.node(kid, n)
			var flags byte
			if kid.file == nil {
				flags = 2
			}
			records = append(records, identifier(kid.name, kid.icb, flags)...)
		}
		f = &File{Data: records}
	}
	entry := w.entry(n, f) // which appends to the data
	copy(w.data[int(n.icb)*block:], entry)
}

// entry writes a file's content and gives its file entry.
func (w *writer) entry(n *udfNode, f *File) []byte {
	d, modified, lengths, tag := make([]byte, block), 84, 168, uint16(261)
	if f.Extended {
		modified, lengths, tag = 92, 208, 266
	}
	le := binary.LittleEndian
	le.PutUint16(d[20:], 4) // strategy
	le.PutUint16(d[24:], 1)
	d[27] = 5
	if n.file == nil {
		d[27] = 4
	}
	le.PutUint16(d[34:], uint16(f.Form))
	le.PutUint64(d[56:], uint64(len(f.Data)+f.Hole))
	copy(d[modified:], []byte{0x78, 0x10, 0xe6, 0x07, 3, 4, 14, 0, 5}) // 2022-03-04 14:00:05, two hours ahead of UTC
	descriptors := w.content(f)
	le.PutUint32(d[lengths+4:], uint32(len(descriptors)))
	copy(d[lengths+8:], descriptors)
	putTag(d[:lengths+8+len(descriptors)], tag, n.icb)
	return d
}

// content writes a file's data, and gives its allocation descriptors.
func (w *writer) content(f *File) []byte {
	if f.Form == Embedded {
		return f.Data
	}
	var out []byte
	piece := (len(f.Data)/max(f.Pieces, 1) + block - 1) / block * block
	for data := f.Data; len(data) > 0; {
		n := min(max(piece, block), len(data))
		w.alloc([]byte("a gap between two extents"))
		out = append(out, descriptor(f.Form, uint32(n), w.alloc(data[:n]))...)
		data = data[n:]
	}
	if f.Hole > 0 {
		out = append(out, descriptor(f.Form, uint32(f.Hole)|2<<30, 0)...)
	}
	if f.Chain {
		width := len(descriptor(f.Form, 0, 0))
		chain := make([]byte, 24+len(out)-width)
		binary.LittleEndian.PutUint32(chain[20:], uint32(len(out)-width))
		copy(chain[24:], out[width:])
		putTag(chain, 258, uint32(len(w.data)/block))
		out = append(out[:width:width], descriptor(f.Form, block|3<<30, w.alloc(chain))...)
	}
	return out
}

func descriptor(form Form, length, at uint32) []byte {
	if form == Long {
		d := make([]byte, 16)
		longAD(d, length, at)
		return d
	}
	d := binary.LittleEndian.AppendUint32(nil, length)
	return binary.LittleEndian.AppendUint32(d, at)
}

func longAD(d []byte, length, at uint32) {
	binary.LittleEndian.PutUint32(d, length)
	binary.LittleEndian.PutUint32(d[4:], at)
}

// identifier is an entry of a folder.
func identifier(name string, icb uint32, flags byte) []byte {
	text := Compressed(name)
	d := make([]byte, (38+len(text)+3)&^3)
	binary.LittleEndian.PutUint16(d[16:], 1)
	d[18], d[19] = flags, byte(len(text))
	longAD(d[20:], block, icb)
	copy(d[38:], text)
	putTag(d, 257, icb)
	return d
}

// Compressed encodes text as OSTA compressed Unicode: with 8 bits a character
// where they suffice, else with 16.
func Compressed(s string) []byte {
	if s == "" {
		return nil
	}
	narrow, wide := []byte{8}, []byte{16}
	for _, u := range utf16.Encode([]rune(s)) {
		narrow = append(narrow, byte(u))
		wide = binary.BigEndian.AppendUint16(wide, u)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r > 0xff }) {
		return wide
	}
	return narrow
}

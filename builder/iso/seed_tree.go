package iso

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
)

// A seed has two trees of the same files.
const (
	plain  = 0 // ISO 9660
	joliet = 1
	trees  = 2
)

// seedNode is a file or a folder of a seed.
type seedNode struct {
	name    [trees][]byte // as each tree writes it
	parent  *seedNode     // the root is its own
	file    File
	kids    []*seedNode // nil for a file
	byFold  map[string]*seedNode
	spelled string // its name

	sector [trees]uint32 // where its data or its records are; the same for a file
	length [trees]uint32 // of a folder's records, whole sectors
	number [trees]int    // a folder's in the path table, from 1
}

func (n *seedNode) folder() bool { return n.byFold != nil }

// plantTree checks the files and arranges them in folders.
func plantTree(files []File) (*seedNode, error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	root := &seedNode{byFold: map[string]*seedNode{}}
	root.parent = root
	for _, f := range files {
		if err := checkPath(f.Path); err != nil {
			return nil, fmt.Errorf("the path %q: %w", f.Path, err)
		}
		// One extent holds 4 GiB less a byte; nothing near that is wanted here.
		if f.Size < 0 || f.Size > math.MaxUint32-sectorSize {
			return nil, fmt.Errorf("the file %s: a size of %d bytes doesn't fit a seed", f.Path, f.Size)
		}
		if err := root.plant(f); err != nil {
			return nil, fmt.Errorf("the path %q: %w", f.Path, err)
		}
	}
	root.nameKids()
	return root, nil
}

func (n *seedNode) plant(f File) error {
	parts := strings.Split(f.Path, "/")
	for i, part := range parts {
		last := i == len(parts)-1
		kid := n.byFold[fold(part)]
		switch {
		case kid == nil:
			kid = &seedNode{spelled: part, parent: n}
			if !last {
				kid.byFold = map[string]*seedNode{}
			}
			n.byFold[fold(part)] = kid
			n.kids = append(n.kids, kid)
		case kid.spelled != part:
			return fmt.Errorf("%q and %q differ only in case, which is the same to Windows", kid.spelled, part)
		case last || !kid.folder():
			return fmt.Errorf("%q is there twice", part)
		}
		n = kid
	}
	n.file = f
	return nil
}

// nameKids gives the names that the two trees write. The kids are in the order
// of their paths, so the short names don't depend on the order of the files.
func (n *seedNode) nameKids() {
	taken := map[string]bool{}
	for _, kid := range n.kids {
		short := shortName(kid.spelled, kid.folder(), taken)
		if !kid.folder() {
			short += ";1"
		}
		kid.name[plain] = []byte(short)
		for _, u := range utf16.Encode([]rune(kid.spelled)) {
			kid.name[joliet] = binary.BigEndian.AppendUint16(kid.name[joliet], u)
		}
		kid.nameKids()
	}
}

// sorted gives the kids in a tree's order (ECMA-119 9.3): by the name before
// the dot, then by what comes after it.
func (n *seedNode) sorted(tree int) []*seedNode {
	return slices.SortedFunc(slices.Values(n.kids), func(a, b *seedNode) int {
		baseA, extA := splitName(a.name[tree], tree)
		baseB, extB := splitName(b.name[tree], tree)
		return cmp.Or(bytes.Compare(baseA, baseB), bytes.Compare(extA, extB))
	})
}

func splitName(name []byte, tree int) (base, ext []byte) {
	width := 1 + tree // bytes of a character
	for i := len(name) - width; i >= 0; i -= width {
		if name[i+width-1] == '.' && (tree == plain || name[i] == 0) {
			return name[:i], name[i:]
		}
	}
	return name, nil
}

// plan is where everything of a seed lies.
type plan struct {
	folders [trees][]*seedNode // in the order of the path table
	tables  [trees]int64       // bytes of a path table
	files   []*seedNode        // in the order of their data
	table   [trees][2]uint32   // sectors of the path tables: little and big endian
	data    uint32             // the first sector of the files
	end     uint32             // the sector after the last
}

// layOut gives everything its place: descriptors in sectors 16 to 18, the path
// tables, the folders of both trees, then the files.
func layOut(root *seedNode) (*plan, error) {
	p := &plan{}
	at := int64(19)
	for tree := range trees {
		p.folders[tree] = breadthFirst(root, tree)
		if n := len(p.folders[tree]); n > math.MaxUint16 {
			return nil, fmt.Errorf("%d folders are more than a seed holds", n)
		}
		p.tables[tree] = int64(len(p.pathTable(tree, binary.LittleEndian)))
		for i := range p.table[tree] {
			p.table[tree][i] = uint32(at)
			at += sectors(p.tables[tree])
		}
	}
	for tree := range trees {
		for _, n := range p.folders[tree] {
			n.sector[tree], n.length[tree] = uint32(at), uint32(len(n.records(tree)))
			at += sectors(int64(n.length[tree]))
		}
	}
	p.data = uint32(at)
	for _, folder := range p.folders[joliet] {
		for _, n := range folder.sorted(joliet) {
			if n.folder() {
				continue
			}
			if at > math.MaxUint32 {
				return nil, fmt.Errorf("the files need more than %d sectors", uint32(math.MaxUint32))
			}
			n.sector = [trees]uint32{uint32(at), uint32(at)}
			p.files = append(p.files, n)
			at += sectors(n.file.Size)
		}
	}
	if at > math.MaxUint32 {
		return nil, fmt.Errorf("the files need more than %d sectors", uint32(math.MaxUint32))
	}
	p.end = uint32(at)
	return p, nil
}

// breadthFirst numbers the folders as the path table wants them (ECMA-119
// 6.9.1): level by level.
func breadthFirst(root *seedNode, tree int) []*seedNode {
	out := []*seedNode{root}
	for i := 0; i < len(out); i++ {
		out[i].number[tree] = i + 1
		for _, kid := range out[i].sorted(tree) {
			if kid.folder() {
				out = append(out, kid)
			}
		}
	}
	return out
}

func sectors(size int64) int64 { return (size + sectorSize - 1) / sectorSize }

package iso

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"time"
)

// volume is one of an image's file systems, as fileSystem walks it.
type volume interface {
	root() (node, error)
	// list gives the entries of a folder, in the order of the medium.
	list(folder node) ([]entry, error)
	// load gives what an entry names.
	load(e entry) (node, error)
	// source gives the image and its length.
	source() (io.ReaderAt, int64)
}

// entry is a name in a folder.
type entry struct {
	name   string
	folder bool
	icb    int64 // UDF: where the node is described, a byte offset
	node   node  // ISO 9660: the node itself
}

// node is a file or a folder.
type node struct {
	id      int64 // where it is on the medium: a folder has one place only
	folder  bool
	size    int64
	modTime time.Time
	extents []extent
	inline  []byte // the content, where it is embedded in the description
}

// extent is a piece of a file: length bytes at off; off is -1 for a piece that
// was never recorded and reads as zeros.
type extent struct{ off, length int64 }

// reader gives a node's content. An extent beyond the image's end is a
// *TruncatedError.
func (n node) reader(src io.ReaderAt, size int64) (*extents, error) {
	r := &extents{src: src, size: n.size, inline: n.inline}
	if n.inline != nil {
		if int64(len(n.inline)) < n.size {
			return nil, errors.New("its embedded content is shorter than its size")
		}
		return r, nil
	}
	var at int64
	for _, e := range n.extents {
		if at >= n.size {
			break
		}
		length := min(e.length, n.size-at)
		if e.off >= 0 && length > size-e.off {
			return nil, &TruncatedError{"its content", e.off + length, size}
		}
		r.pieces, r.starts = append(r.pieces, e), append(r.starts, at)
		at += length
	}
	if at < n.size {
		return nil, fmt.Errorf("it has %d bytes on the medium, %d by its description", at, n.size)
	}
	return r, nil
}

// extents reads a file out of its pieces.
type extents struct {
	src    io.ReaderAt
	size   int64
	pieces []extent
	starts []int64 // the offset in the file at which a piece begins
	inline []byte
}

// ReadAt implements io.ReaderAt.
func (r *extents) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("reading at a negative offset")
	}
	for n < len(p) {
		at := off + int64(n)
		if at < 0 || at >= r.size {
			return n, io.EOF
		}
		part := p[n:min(int64(len(p)), int64(n)+r.size-at)]
		if r.inline != nil {
			n += copy(part, r.inline[at:])
			continue
		}
		i := sort.Search(len(r.starts), func(i int) bool { return r.starts[i] > at }) - 1
		piece, in := r.pieces[i], at-r.starts[i]
		part = part[:min(int64(len(part)), piece.length-in)]
		if piece.off < 0 {
			clear(part)
			n += len(part)
			continue
		}
		m, err := r.src.ReadAt(part, piece.off+in)
		n += m
		if m < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the image became shorter while it was read
			}
			return n, err
		}
	}
	return n, nil
}

// readFolder reads the data of a folder whole.
func readFolder(n node, src io.ReaderAt, size int64) ([]byte, error) {
	if n.size > maxFolderSize {
		return nil, fmt.Errorf("the folder's data has %d bytes, more than any real one", n.size)
	}
	r, err := n.reader(src, size)
	if err != nil {
		return nil, err
	}
	data := make([]byte, n.size)
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, n.size), data); err != nil {
		return nil, err
	}
	return data, nil
}

// readAt reads n bytes at off; an end before that is a *TruncatedError.
func readAt(src io.ReaderAt, size, off int64, n int) ([]byte, error) {
	if off < 0 || off > size || int64(n) > size-off {
		return nil, &TruncatedError{"a descriptor", off + int64(n), size}
	}
	data := make([]byte, n)
	if m, err := src.ReadAt(data, off); m < n {
		return nil, err
	}
	return data, nil
}

package iso

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"
)

// fileSystem presents a volume as an fs.FS.
type fileSystem struct {
	vol volume

	mu sync.Mutex
	// places has the path of every folder seen, by its place on the medium. A
	// folder in two places would make a tree without an end, or one that
	// doubles with each level.
	places map[int64]string
}

func newFileSystem(v volume) *fileSystem {
	return &fileSystem{vol: v, places: map[int64]string{}}
}

// Open implements fs.FS. The error is an *fs.PathError that wraps
// fs.ErrNotExist, a *TruncatedError or what is damaged.
func (f *fileSystem) Open(name string) (fs.File, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return file, nil
}

func (f *fileSystem) open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	n, err := f.vol.root()
	if err != nil {
		return nil, err
	}
	at := "." // the path in the medium's own spelling
	if name != "." {
		parts := strings.Split(name, "/")
		if len(parts) > maxDepth {
			return nil, fmt.Errorf("more than %d folders deep", maxDepth)
		}
		for _, part := range parts {
			entries, err := f.list(n, at)
			if err != nil {
				return nil, err
			}
			e, ok := find(entries, part)
			if !ok {
				return nil, fs.ErrNotExist
			}
			if n, err = f.vol.load(e); err != nil {
				return nil, err
			}
			at = path.Join(at, e.name)
		}
	}
	info := info{name: path.Base(at), node: n}
	if n.folder {
		return &folder{info: info, fs: f, path: at}, nil
	}
	src, size := f.vol.source()
	r, err := n.reader(src, size)
	if err != nil {
		return nil, err
	}
	return &file{info: info, SectionReader: io.NewSectionReader(r, 0, n.size)}, nil
}

// list gives the entries of the folder n at path at, each name once.
func (f *fileSystem) list(n node, at string) ([]entry, error) {
	if !n.folder {
		return nil, fs.ErrNotExist
	}
	f.mu.Lock()
	first, seen := f.places[n.id]
	if !seen {
		f.places[n.id] = at
	}
	f.mu.Unlock()
	if seen && first != at {
		return nil, fmt.Errorf("the folder is also at %s: the medium is damaged", first)
	}
	entries, err := f.vol.list(n)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(entries))
	kept := entries[:0]
	for _, e := range entries {
		if e.name == "." || !fs.ValidPath(e.name) || strings.ContainsAny(e.name, "/\x00") {
			return nil, fmt.Errorf("the folder has the impossible name %q", e.name)
		}
		if !names[e.name] {
			names[e.name] = true
			kept = append(kept, e)
		}
	}
	return kept, nil
}

func find(entries []entry, name string) (entry, bool) {
	folded := -1
	for i, e := range entries {
		if e.name == name {
			return e, true
		}
		if folded < 0 && strings.EqualFold(e.name, name) {
			folded = i
		}
	}
	if folded < 0 {
		return entry{}, false
	}
	return entries[folded], true
}

// info implements fs.FileInfo.
type info struct {
	name string
	node node
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.node.size }
func (i info) ModTime() time.Time { return i.node.modTime }
func (i info) IsDir() bool        { return i.node.folder }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.node.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// file is an opened regular file: fs.File, io.ReaderAt and io.Seeker.
type file struct {
	info info
	*io.SectionReader
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// folder is an opened folder.
type folder struct {
	info    info
	fs      *fileSystem
	path    string
	entries []fs.DirEntry
	listed  bool
}

func (f *folder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *folder) Close() error               { return nil }
func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.path, Err: errors.New("it is a folder")}
}

// ReadDir implements fs.ReadDirFile.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if !f.listed {
		entries, err := f.fs.list(f.info.node, f.path)
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: f.path, Err: err}
		}
		for _, e := range entries {
			f.entries = append(f.entries, &dirEntry{e, f.fs})
		}
		f.listed = true
	}
	if n > 0 && len(f.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(f.entries) {
		n = len(f.entries)
	}
	out := f.entries[:n:n]
	f.entries = f.entries[n:]
	return out, nil
}

// dirEntry implements fs.DirEntry; what it names is read only if asked for.
type dirEntry struct {
	entry entry
	fs    *fileSystem
}

func (d *dirEntry) Name() string { return d.entry.name }
func (d *dirEntry) IsDir() bool  { return d.entry.folder }
func (d *dirEntry) Type() fs.FileMode {
	if d.entry.folder {
		return fs.ModeDir
	}
	return 0
}
func (d *dirEntry) Info() (fs.FileInfo, error) {
	n, err := d.fs.vol.load(d.entry)
	if err != nil {
		return nil, err
	}
	return info{d.entry.name, n}, nil
}

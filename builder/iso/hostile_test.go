package iso_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

// walk reads everything of an image that can be read, and says what it saw.
func walk(image []byte) (paths []string, err error) {
	img, err := iso.NewImage(bytes.NewReader(image), int64(len(image)))
	if err != nil {
		return nil, err
	}
	var first error
	_ = fs.WalkDir(img.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		paths = append(paths, p)
		if err == nil && !d.IsDir() {
			err = read(img.FS(), p)
		}
		if first == nil {
			first = err
		}
		return nil // and on to the next
	})
	return paths, first
}

func read(files fs.FS, p string) error {
	f, err := files.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

// TestHostileUDF changes one field of a partition at a time and mends the
// checksums, so that the field itself must be caught.
func TestHostileUDF(t *testing.T) {
	image := isotest.UDF{Label: "X", Files: []isotest.File{
		{Path: "dir/file", Data: noise(5000), Form: isotest.Short, Pieces: 3, Chain: true},
	}}.Bytes()
	// Blocks in the order of isotest: file set 0, root 1, dir 2, file 3, its
	// pieces and chain, then the records of dir and of the root.
	le := binary.LittleEndian
	block := func(p []byte, n int) []byte { return p[n*2048:] }
	find := func(p []byte, name string) []byte { // the identifier of a name
		return p[bytes.Index(p, []byte("\x08"+name))-38:]
	}
	for _, c := range []struct {
		name   string
		change func(p []byte)
		want   string
	}{
		{"folder in itself", func(p []byte) { d := find(p, "file"); d[18] = 2; le.PutUint32(d[24:], 2) }, "the folder is also at"},
		{"root below", func(p []byte) { d := find(p, "file"); d[18] = 2; le.PutUint32(d[24:], 1) }, "the folder is also at"},
		{"root beyond the partition", func(p []byte) { le.PutUint32(p[404:], 1<<30) }, "outside the partition"},
		{"root in another partition", func(p []byte) { le.PutUint16(p[408:], 1) }, "partition 1 is named"},
		{"file of exabytes", func(p []byte) { le.PutUint64(block(p, 3)[56:], 1<<62) }, "larger than the image"},
		{"file of more than it has", func(p []byte) { le.PutUint64(block(p, 3)[56:], 5001) }, "5001 by its description"},
		{"negative size", func(p []byte) { le.PutUint64(block(p, 3)[56:], 1<<63) }, "larger than the image"},
		{"attributes beyond the entry", func(p []byte) { le.PutUint32(block(p, 3)[168:], 1<<32-1) }, "reach beyond it"},
		{"descriptors beyond the entry", func(p []byte) { le.PutUint32(block(p, 3)[172:], 1<<32-1) }, "reach beyond it"},
		{"extent beyond the partition", func(p []byte) { le.PutUint32(block(p, 3)[180:], 1<<32-1) }, "outside the partition"},
		{"embedded and short", func(p []byte) { block(p, 3)[34] = 3 }, "shorter than its size"},
		{"unknown form", func(p []byte) { block(p, 3)[34] = 5 }, "form 5"},
		{"unknown strategy", func(p []byte) { le.PutUint16(block(p, 3)[20:], 4096) }, "strategy 4096"},
		{"symbolic link", func(p []byte) { block(p, 3)[27] = 12 }, "files of type 12"},
		{"slash in a name", func(p []byte) { find(p, "file")[40] = '/' }, "impossible name"},
		{"dots as a name", func(p []byte) { d := find(p, "dir"); d[19] = 3; d[39], d[40] = '.', '.' }, "impossible name"},
		{"folder that is a file", func(p []byte) { block(p, 2)[27] = 5 }, "not implemented"},
		{"chain in a circle", func(p []byte) {
			aed := p[bytes.Index(p, []byte{2, 1, 2, 0}):] // tag 258
			n := le.Uint32(aed[20:])
			le.PutUint32(aed[24+n-8:], 2048|3<<30)
			le.PutUint32(aed[24+n-4:], le.Uint32(block(p, 3)[188:]))
		}, "in a circle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := append([]byte{}, isotest.Partition(image)...)
			c.change(p)
			isotest.Retag(p)
			paths, err := walk(isotest.Bridge("X", p))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if len(paths) > 4 { // ., dir, dir/file, and that again with its error
				t.Errorf("walked %d paths", len(paths))
			}
		})
	}
}

// TestDamagedUDF flips a byte of a descriptor, whose CRC then tells.
func TestDamagedUDF(t *testing.T) {
	image := isotest.UDF{Label: "X", Files: []isotest.File{{Path: "dir/file", Data: []byte("x")}}}.Bytes()
	for _, at := range []int{256*2048 + 17, 257*2048 + 401, 258*2048 + 57, 259*2048 + 27} {
		bad := append([]byte{}, image...)
		bad[at] ^= 1
		if _, err := walk(bad); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}

func seed(t testing.TB, files ...iso.File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := iso.WriteSeed(context.Background(), &b, "WBOX", files); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestHostileISO9660 changes a record of the Joliet tree.
func TestHostileISO9660(t *testing.T) {
	image := seed(t, iso.FromBytes("loop/file", noise(5000)))
	root := binary.LittleEndian.Uint32(image[17*2048+158:])
	for _, c := range []struct {
		name   string
		change func(loop, file []byte)
		want   string
	}{
		{"folder that is the root", func(d, _ []byte) { binary.LittleEndian.PutUint32(d[2:], root) }, "the folder is also at"},
		{"folder of gigabytes", func(d, _ []byte) { binary.LittleEndian.PutUint32(d[10:], 1<<31) }, "more than any real one"},
		{"folder beyond the end", func(d, _ []byte) { binary.LittleEndian.PutUint32(d[2:], 1<<31) }, "reaches to byte"},
		{"file beyond the end", func(_, d []byte) { binary.LittleEndian.PutUint32(d[10:], 1<<31) }, "reaches to byte"},
		{"name beyond its record", func(d, _ []byte) { d[32] = 200 }, "beyond its record"},
		{"record of 3 bytes", func(_, d []byte) { d[0] = 3 }, "record is damaged"},
		{"interleaved", func(_, d []byte) { d[26] = 1 }, "interleaved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := append([]byte{}, image...)
			record := func(name string) []byte {
				return bad[bytes.LastIndex(bad, []byte("\x00"+strings.Join(strings.Split(name, ""), "\x00")))-33:]
			}
			c.change(record("loop"), record("file"))
			paths, err := walk(bad)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if len(paths) > 4 { // ., dir, dir/file, and that again with its error
				t.Errorf("walked %d paths", len(paths))
			}
		})
	}
}

func FuzzUDF(f *testing.F) {
	for _, form := range []isotest.File{
		{Form: isotest.Short, Pieces: 3, Chain: true}, {Form: isotest.Long, Extended: true, Hole: 9}, {Form: isotest.Embedded},
	} {
		form.Path, form.Data = "dir/日本", []byte("content")
		f.Add(isotest.Partition(isotest.UDF{Label: "X", Files: []isotest.File{form}}.Bytes()))
	}
	f.Fuzz(func(t *testing.T, partition []byte) {
		if len(partition) > 1<<16 {
			return
		}
		isotest.Retag(partition)
		checkWalk(t, isotest.Bridge("X", partition))
	})
}

func FuzzISO9660(f *testing.F) {
	f.Add(seed(f, iso.FromBytes("dir/file", []byte("content")))[16*2048:])
	f.Fuzz(func(t *testing.T, after []byte) {
		if len(after) > 1<<16 {
			return
		}
		checkWalk(t, append(make([]byte, 16*2048), after...))
	})
}

// checkWalk reads a fuzzed image: no more paths than it can have records.
func checkWalk(t *testing.T, image []byte) {
	paths, err := walk(image)
	if len(paths) > len(image)/34 {
		t.Errorf("walked %d paths of %d bytes", len(paths), len(image))
	}
	var short *iso.TruncatedError
	if errors.As(err, &short) && short.Want <= short.Have {
		t.Errorf("truncated although long enough: %v", err)
	}
}

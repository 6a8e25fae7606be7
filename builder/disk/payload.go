package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/ctxio"
)

// PayloadIndex is the file on the payload partition that lists the others: a
// JSON array of {name, sha256, size}, sorted by name.
const PayloadIndex = "payload.json"

// PayloadFile is one file of the payload partition.
type PayloadFile struct {
	Name   string `json:"name"` // such as "kubelet.exe"
	Path   string `json:"-"`    // where it lies on this host; unused when read
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
}

var validPayloadName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?$`)

// WritePayload replaces the content of the payload partition with the files:
// the basic data partition of overlay whose FAT32 label is PayloadLabel. The
// partition is made read-only, hidden and without drive letter for Windows,
// and read back in full. Its bytes depend on the files' names and contents and
// on where the partition lies, on nothing else. What overlay is layered on is
// only read. An error leaves overlay half-written: throw it away.
//
// scratch is an existing folder for temporary files, as large as the
// partition at most. Files that don't fit or aren't what the caller says are
// a *fault.Problem of class fault.Input.
func (t *Tool) WritePayload(ctx context.Context, overlay string, files []PayloadFile, scratch string) error {
	files, index, err := payloadIndex(files)
	if err != nil {
		return err
	}
	if overlay, err = filepath.Abs(overlay); err != nil {
		return fmt.Errorf("writing the payload: %w", err)
	}
	g, err := t.gpt(ctx, overlay, scratch)
	if err != nil {
		return fmt.Errorf("reading the disk's partitions: %w", err)
	}
	p, err := t.findLabel(ctx, g, overlay, PayloadLabel, scratch)
	if err != nil {
		return fmt.Errorf("finding the payload partition: %w", err)
	}
	image := filepath.Join(scratch, "payload.img")
	defer os.Remove(image)
	if err := writePayloadImage(ctx, image, p, files, index); err != nil {
		return err
	}
	if err := t.write(ctx, window{overlay, p.Offset(), p.Size()}, image); err != nil {
		return err
	}
	for _, part := range g.addAttributes(p.Number, AttrReadOnly|AttrHidden|AttrNoDriveLetter) {
		if err := t.writeBytes(ctx, overlay, part.offset, part.data, scratch); err != nil {
			return fmt.Errorf("setting the payload partition's attributes: %w", err)
		}
	}
	got, err := t.ReadPayload(ctx, overlay, scratch)
	if err != nil {
		return fmt.Errorf("reading the payload back: %w", err)
	}
	same := func(a, b PayloadFile) bool { return a.Name == b.Name && a.SHA256 == b.SHA256 && a.Size == b.Size }
	if !slices.EqualFunc(got, files, same) {
		return errors.New("reading the payload back: it is not what was written")
	}
	return nil
}

// payloadIndex checks the files, sorts a copy of them by name and returns it
// with the index file's content.
func payloadIndex(files []PayloadFile) ([]PayloadFile, []byte, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b PayloadFile) int { return strings.Compare(a.Name, b.Name) })
	seen := map[string]bool{PayloadIndex: true}
	for _, f := range files {
		lower := strings.ToLower(f.Name)
		switch sum, err := hex.DecodeString(f.SHA256); {
		case !validPayloadName.MatchString(f.Name):
			return nil, nil, badPayload(f.Name, "it is not a plain file name", "use letters, digits, '.', '-' and '_'", nil)
		case seen[lower]:
			return nil, nil, badPayload(f.Name, "the name is taken", "rename it", nil)
		case f.Size == 0:
			return nil, nil, badPayload(f.Name, "the file is empty", "leave it out", nil)
		case err != nil || len(sum) != sha256.Size || f.SHA256 != strings.ToLower(f.SHA256):
			return nil, nil, fmt.Errorf("%s: %q is not a SHA-256", f.Name, f.SHA256)
		}
		seen[lower] = true
	}
	index, err := json.MarshalIndent(files, "", "  ")
	return files, append(index, '\n'), err
}

func badPayload(name, why, fix string, err error) error {
	return &fault.Problem{Class: fault.Input, Field: "payload", Value: name, Why: why, Fix: fix, Err: err}
}

// writePayloadImage writes the file system that is going into partition p.
func writePayloadImage(ctx context.Context, path string, p Partition, files []PayloadFile, index []byte) error {
	sum := sha256.Sum256(index)
	v := fatVolume{size: p.Size(), hidden: uint32(p.First), label: PayloadLabel, id: binary.LittleEndian.Uint32(sum[:])}
	v.files = append(v.files, fatFile{PayloadIndex, int64(len(index)), func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(index))
		return err
	}})
	for _, f := range files {
		v.files = append(v.files, fatFile{f.Name, f.Size, func(w io.Writer) error { return copyChecked(ctx, w, f) }})
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("writing the payload's image: %w", err)
	}
	defer out.Close()
	if err := out.Truncate(v.size); err != nil {
		return fmt.Errorf("writing the payload's image: %w", err)
	}
	err = v.writeTo(out)
	if errors.Is(err, errNoRoom) {
		return badPayload("", "the files don't fit onto the payload partition", "leave some out", err)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		return fmt.Errorf("writing the payload's image: %w", err)
	}
	return nil
}

// copyChecked copies the file to w and compares what it read with f.
func copyChecked(ctx context.Context, w io.Writer, f PayloadFile) error {
	in, err := os.Open(f.Path)
	if err != nil {
		return badPayload(f.Path, "it can't be read", "check the file", err)
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || info.Size() != f.Size {
		return badPayload(f.Path, "its size has changed since it was checked", "start again", err)
	}
	h := sha256.New()
	if _, err := io.Copy(w, io.TeeReader(ctxio.Reader(ctx, in), h)); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return badPayload(f.Path, "its content has changed since it was checked", "start again", nil)
	}
	return nil
}

// ReadPayload reads the whole payload partition of a disk and returns its
// files, sorted by name, once every digest agrees with the partition's index
// and the partition holds nothing else. scratch is as for WritePayload.
func (t *Tool) ReadPayload(ctx context.Context, disk, scratch string) ([]PayloadFile, error) {
	disk, err := filepath.Abs(disk)
	if err != nil {
		return nil, err
	}
	g, err := t.gpt(ctx, disk, scratch)
	if err != nil {
		return nil, err
	}
	p, err := t.findLabel(ctx, g, disk, PayloadLabel, scratch)
	if err != nil {
		return nil, err
	}
	image := filepath.Join(scratch, "payload.img")
	defer os.Remove(image)
	if err := t.read(ctx, window{disk, p.Offset(), p.Size()}, image); err != nil {
		return nil, err
	}
	return readPayloadImage(ctx, image, p.Size())
}

func readPayloadImage(ctx context.Context, path string, size int64) ([]PayloadFile, error) {
	image, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	return readPayloadFrom(ctx, image, size)
}

// maxIndexSize bounds the index, in bytes; ours has a few hundred.
const maxIndexSize = 1 << 20

func readPayloadFrom(ctx context.Context, r io.ReaderAt, size int64) ([]PayloadFile, error) {
	fs, err := openFAT(r, size)
	if err != nil {
		return nil, fmt.Errorf("reading the payload's file system: %w", err)
	}
	entries, err := fs.root()
	if err != nil {
		return nil, fmt.Errorf("reading the payload's directory: %w", err)
	}
	var want []PayloadFile
	byName := map[string]fatEntry{}
	for _, e := range entries {
		byName[e.name] = e
	}
	index, found := byName[PayloadIndex]
	if !found || index.size > maxIndexSize {
		return nil, fmt.Errorf("the payload has no sound %s", PayloadIndex)
	}
	data, err := fs.chain(index.cluster, index.size)
	if err == nil {
		err = json.NewDecoder(data).Decode(&want)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the payload's index: %w", err)
	}
	if len(entries) != len(want)+1 || len(byName) != len(entries) {
		return nil, fmt.Errorf("the payload has %d files, its index lists %d", len(entries)-1, len(want))
	}
	for _, f := range want {
		data, err := fs.chain(byName[f.Name].cluster, byName[f.Name].size)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.Name, err)
		}
		h := sha256.New()
		n, err := io.Copy(h, ctxio.Reader(ctx, data))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.Name, err)
		}
		if sum := hex.EncodeToString(h.Sum(nil)); n != f.Size || sum != f.SHA256 {
			return nil, fmt.Errorf("%s has %d bytes and SHA-256 %s, the index says %d and %s", f.Name, n, sum, f.Size, f.SHA256)
		}
	}
	return want, nil
}

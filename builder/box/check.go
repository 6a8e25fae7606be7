package box

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/gzip"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Report is what Check found in a box.
type Report struct {
	SHA256      string            // of the file, hex
	Size        int64             // of the file, bytes
	Provider    string            // "libvirt"
	VirtualGiB  int64             // as the metadata says
	DiskSize    int64             // bytes of the image inside
	VirtualSize int64             // bytes that the guest sees, as the image says
	Vagrantfile []byte            // as it lies in the box
	Info        map[string]string // info.json
}

const (
	maxSmallMember = 1 << 20 // bytes of a member that is read into memory
	maxMembers     = 16
)

// Check reads a box from its first byte to its last and returns what it holds,
// or a *fault.Problem of class fault.Input. Vagrant itself looks neither at
// gzip's checksum nor for links, and takes a wrong virtual_size without a
// word (all tried).
func Check(ctx context.Context, path string) (Report, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, &fault.Problem{Class: fault.Input, Field: "box", Value: path, Why: "there is no such file", Fix: "check the path"}
	}
	if err != nil {
		return Report{}, refused(path, err)
	}
	defer f.Close()
	h, n := sha256.New(), &countWriter{}
	r, err := checkArchive(io.TeeReader(&watched{ctx: ctx, r: f}, io.MultiWriter(h, n)))
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	if err != nil {
		return Report{}, refused(path, err)
	}
	r.SHA256, r.Size = hex.EncodeToString(h.Sum(nil)), n.n
	return r, nil
}

func refused(path string, err error) error {
	return &fault.Problem{Class: fault.Input, Field: "box", Value: path, Why: "it is not a sound libvirt box",
		Fix: "build it again, or download it again and compare its checksum", Err: err}
}

// checkArchive checks a whole stream: nothing may follow the box.
func checkArchive(stream io.Reader) (Report, error) {
	z, err := gzip.NewReader(stream)
	if err != nil {
		return Report{}, fmt.Errorf("reading gzip: %w", err)
	}
	c := contents{seen: map[string]bool{}}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Report{}, fmt.Errorf("reading the archive: %w", err)
		}
		if err := c.add(h, t); err != nil {
			return Report{}, fmt.Errorf("%q: %w", h.Name, err)
		}
	}
	// Only the end of the stream brings gzip's checksum to light.
	if n, err := io.Copy(io.Discard, z); err != nil {
		return Report{}, fmt.Errorf("reading gzip: %w", err)
	} else if n > 1<<20 {
		return Report{}, fmt.Errorf("%d bytes follow the archive", n)
	}
	return c.report()
}

// contents collects an archive's members.
type contents struct {
	seen map[string]bool
	meta []byte
	r    Report
	info []byte
}

func (c *contents) add(h *tar.Header, data io.Reader) error {
	switch {
	case h.Typeflag != tar.TypeReg:
		return errors.New("it is not a plain file")
	case c.seen[h.Name]:
		return errors.New("it is there twice")
	case len(c.seen) == maxMembers:
		return errors.New("there are too many files")
	}
	c.seen[h.Name] = true
	var err error
	switch h.Name {
	case metadataFile:
		c.meta, err = small(h, data)
	case infoFile:
		c.info, err = small(h, data)
	case vagrantFile:
		c.r.Vagrantfile, err = small(h, data)
	case diskFile:
		c.r.DiskSize = h.Size
		head := make([]byte, qcow2HeaderSize)
		if _, err = io.ReadFull(data, head); err != nil {
			return err
		}
		var q qcow2Header
		if q, err = parseQcow2(head, h.Size); err == nil {
			c.r.VirtualSize = q.virtualSize
			_, err = io.Copy(io.Discard, data)
		}
	default:
		err = errors.New("it does not belong into a libvirt box")
	}
	return err
}

func small(h *tar.Header, data io.Reader) ([]byte, error) {
	if h.Size > maxSmallMember {
		return nil, fmt.Errorf("%d bytes are too many", h.Size)
	}
	return io.ReadAll(data)
}

func (c *contents) report() (Report, error) {
	for _, name := range []string{metadataFile, infoFile, vagrantFile, diskFile} {
		if !c.seen[name] {
			return Report{}, fmt.Errorf("%s is missing", name)
		}
	}
	var m metadata
	d := json.NewDecoder(bytes.NewReader(c.meta))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Report{}, fmt.Errorf("reading %s: %w", metadataFile, err)
	}
	if err := json.Unmarshal(c.info, &c.r.Info); err != nil {
		return Report{}, fmt.Errorf("reading %s: %w", infoFile, err)
	}
	want := metadata{"libvirt", "qcow2", virtualGiB(c.r.VirtualSize), "amd64"}
	if m != want {
		return Report{}, fmt.Errorf("%s says %+v, want %+v", metadataFile, m, want)
	}
	c.r.Provider, c.r.VirtualGiB = m.Provider, m.VirtualSize
	return c.r, nil
}

type countWriter struct{ n int64 }

func (c *countWriter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func newline(data []byte) io.Reader { return memory(append(data, '\n')) }

func memory(data []byte) io.Reader { return bytes.NewReader(data) }

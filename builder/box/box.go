// Package box writes and checks Vagrant boxes and the catalogs that offer them.
// A box is an archive of a disk, a Vagrantfile and two small JSON files; a
// catalog is a JSON file that Vagrant reads to choose a version. The package
// must not import spec, stage or a stage, nor run anything but the archiver.
package box

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"github.com/klauspost/pgzip"

	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
)

// Names of a box's members, all at the root of the archive.
const (
	metadataFile = "metadata.json"
	infoFile     = "info.json"
	vagrantFile  = "Vagrantfile"
	diskFile     = "box.img"
)

// Box is a libvirt box, version 1 of that format, which the QEMU provider and
// old plugins read too.
type Box struct {
	Disk        string // a qcow2 image without backing file and, since the archive is packed, without packed clusters
	VirtualSize int64  // bytes that the guest sees of Disk
	Vagrantfile []byte // see Vagrantfile
	// Info is what "vagrant box list -i" shows: a version of Kubernetes in
	// full, a licence, and the like.
	Info map[string]string
	// Time is every member's time; zero stands for 1970, so that the same
	// content gives the same bytes.
	Time time.Time
}

// metadata is a box's metadata.json.
type metadata struct {
	Provider     string `json:"provider"`
	Format       string `json:"format"`
	VirtualSize  int64  `json:"virtual_size"` // GiB; anything but a whole number breaks vagrant-libvirt
	Architecture string `json:"architecture"`
}

const (
	gib = int64(1) << 30
	// blockSize is what gzip packs at a time. It decides the bytes; the number
	// of blocks in work, which follows the machine, does not (measured).
	blockSize = 1 << 20
	gzipLevel = 6
	// ustarLimit is the largest member that a USTAR header can tell.
	ustarLimit = 8*gib - 1
)

// virtualGiB rounds up: a smaller disk would cut the guest's file system off,
// and vagrant-libvirt says nothing about it.
func virtualGiB(bytes int64) int64 { return (bytes + gib - 1) / gib }

// WriteLibvirt writes the box to path, which appears complete or not at all.
// gzip is the only compression that every Vagrant reads. The same content
// gives the same bytes, on any machine. progress, where not nil, is told the
// bytes of the disk that are packed, and how many there are.
func WriteLibvirt(ctx context.Context, b Box, path string, progress func(done, total int64)) error {
	disk, err := os.Open(b.Disk)
	if err != nil {
		return fmt.Errorf("opening the box's disk: %w", err)
	}
	defer disk.Close()
	size, err := checkDisk(disk, b.VirtualSize)
	if err != nil {
		return fmt.Errorf("reading the box's disk: %w", err)
	}
	meta, err := json.MarshalIndent(metadata{"libvirt", "qcow2", virtualGiB(b.VirtualSize), "amd64"}, "", "  ")
	if err != nil {
		return err
	}
	info, err := json.MarshalIndent(nonNil(b.Info), "", "  ")
	if err != nil {
		return err
	}
	members := []member{
		{metadataFile, int64(len(meta)) + 1, newline(meta)},
		{infoFile, int64(len(info)) + 1, newline(info)},
		{vagrantFile, int64(len(b.Vagrantfile)), memory(b.Vagrantfile)},
		{diskFile, size, &watched{ctx: ctx, r: disk, total: size, progress: progress}},
	}
	return atomicfile.Func(ctx, path, 0o644, func(w io.Writer) error { return pack(w, members, b.Time) })
}

// member is one file of the archive.
type member struct {
	name string
	size int64
	data io.Reader
}

func pack(w io.Writer, members []member, at time.Time) error {
	z, err := pgzip.NewWriterLevel(w, gzipLevel)
	if err != nil {
		return err
	}
	defer z.Close() // again, perhaps: its goroutines must end
	if err := z.SetConcurrency(blockSize, 4); err != nil {
		return err
	}
	if at.IsZero() {
		at = time.Unix(0, 0)
	}
	t := tar.NewWriter(z)
	for _, m := range members {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: m.name, Size: m.size, Mode: 0o644,
			ModTime: at.UTC().Truncate(time.Second), Format: tar.FormatUSTAR}
		if m.size > ustarLimit {
			h.Format = tar.FormatGNU
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %s: %w", m.name, err)
		}
		if _, err := io.Copy(t, m.data); err != nil {
			return fmt.Errorf("packing %s: %w", m.name, err)
		}
	}
	if err := t.Close(); err != nil { // it also finds a member that is too short
		return err
	}
	return z.Close()
}

// checkDisk reads the image's header and returns the file's size.
func checkDisk(f *os.File, virtualSize int64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	head := make([]byte, qcow2HeaderSize)
	if _, err := f.ReadAt(head, 0); err != nil {
		return 0, err
	}
	h, err := parseQcow2(head, info.Size())
	if err != nil {
		return 0, err
	}
	if h.virtualSize != virtualSize {
		return 0, fmt.Errorf("the guest sees %d bytes, want %d", h.virtualSize, virtualSize)
	}
	return info.Size(), nil
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// watched counts what is read and stops once the context has ended.
type watched struct {
	ctx         context.Context
	r           io.Reader
	done, total int64
	progress    func(done, total int64)
}

func (r *watched) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.done += int64(n)
	if r.progress != nil {
		r.progress(r.done, r.total)
	}
	return n, err
}

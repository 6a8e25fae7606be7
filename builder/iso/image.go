package iso

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// ErrNotISO says that the bytes are neither UDF nor ISO 9660.
var ErrNotISO = errors.New("neither a UDF nor an ISO 9660 volume is in it")

// TruncatedError says that an image is shorter than it says of itself.
type TruncatedError struct {
	What       string // what says so: "the volume", or a file's path
	Want, Have int64  // bytes
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s reaches to byte %d, the image has %d", e.What, e.Want, e.Have)
}

// Image is an opened ISO image. It may be used by several goroutines.
type Image struct {
	src      io.ReaderAt
	size     int64
	volumeID string
	label    string
	files    *fileSystem
	closer   io.Closer
}

// Open opens the image at path. It reads descriptors only; an image that is
// shorter than its volume is refused with a *TruncatedError, something else
// with ErrNotISO. The caller closes the image.
func Open(path string) (*Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	img, err := NewImage(f, info.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	img.closer = f
	return img, nil
}

// NewImage is Open for an image of size bytes that is read through r.
func NewImage(r io.ReaderAt, size int64) (*Image, error) {
	img := &Image{src: r, size: size}
	iso, isoErr := readISO9660(r, size)
	udf, udfErr := readUDF(r, size)
	var want int64
	if isoErr == nil {
		want, img.volumeID, img.label = iso.end, iso.primary.id, iso.primary.id
		img.files = newFileSystem(iso.primary)
		if iso.joliet != nil {
			img.label, img.files = iso.joliet.id, newFileSystem(iso.joliet)
		}
	}
	if udfErr == nil || udf != nil {
		want = max(want, udf.end)
	}
	if want > size {
		return nil, &TruncatedError{"the volume", want, size}
	}
	switch {
	case udfErr == nil:
		// Windows prefers UDF, and on its own media the other side is empty.
		img.label, img.files = udf.label, newFileSystem(udf)
		if isoErr != nil {
			img.volumeID = udf.label
		}
	case !errors.Is(udfErr, ErrNotISO):
		return nil, fmt.Errorf("reading the UDF volume: %w", udfErr)
	case isoErr != nil:
		return nil, isoErr
	}
	return img, nil
}

// Close closes the file behind an image from Open.
func (i *Image) Close() error {
	if i.closer == nil {
		return nil
	}
	return i.closer.Close()
}

// Size is the image's length in bytes.
func (i *Image) Size() int64 { return i.size }

// VolumeID is the volume identifier of the ISO 9660 side, or UDF's where there
// is no other.
func (i *Image) VolumeID() string { return i.volumeID }

// Label is the volume label as Windows shows it: UDF's logical volume
// identifier, else Joliet's, else that of ISO 9660.
func (i *Image) Label() string { return i.label }

// FS gives the files: those of the UDF side where there is one, else Joliet's,
// else those of ISO 9660. Names are found whatever their case, as Windows
// does; an exact match comes first. Every opened regular file is also an
// io.ReaderAt and an io.Seeker, so a large one is never read whole.
func (i *Image) FS() fs.FS { return i.files }

// trimID takes the padding off an identifier.
func trimID(s string) string { return strings.TrimRight(s, " \x00") }

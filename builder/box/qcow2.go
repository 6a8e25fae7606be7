package box

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// qcow2HeaderSize is how much of an image parseQcow2 needs, in bytes: version
// 3's fixed fields and the compression type behind them.
const qcow2HeaderSize = 112

// Bits of a qcow2 header's incompatible features (QEMU, docs/interop/qcow2).
const (
	featureDirty       = 1 << 0
	featureCorrupt     = 1 << 1
	featureDataFile    = 1 << 2
	featureCompression = 1 << 3
	featureExtendedL2  = 1 << 4
)

// qcow2Header is what a box needs to know of an image.
type qcow2Header struct {
	virtualSize int64
}

// parseQcow2 checks the first bytes of an image of fileSize bytes: it must
// stand alone and be readable by every QEMU of the last years.
func parseQcow2(b []byte, fileSize int64) (qcow2Header, error) {
	be := binary.BigEndian
	if len(b) < qcow2HeaderSize || string(b[:4]) != "QFI\xfb" {
		return qcow2Header{}, errors.New("it is not a qcow2 image")
	}
	version, size := be.Uint32(b[4:]), be.Uint64(b[24:])
	l1, l1Offset, snapshots := be.Uint32(b[36:]), be.Uint64(b[40:]), be.Uint32(b[60:])
	switch {
	case version != 2 && version != 3:
		return qcow2Header{}, fmt.Errorf("qcow2 version %d is not known", version)
	case be.Uint64(b[8:]) != 0:
		return qcow2Header{}, errors.New("it names a backing file, which no box can carry")
	case be.Uint32(b[32:]) != 0:
		return qcow2Header{}, errors.New("it is encrypted")
	case size == 0 || size > 1<<56:
		return qcow2Header{}, fmt.Errorf("a virtual size of %d bytes is not possible", size)
	case l1Offset > uint64(fileSize) || uint64(l1)*8 > uint64(fileSize)-l1Offset:
		return qcow2Header{}, errors.New("it is cut short")
	case snapshots != 0:
		return qcow2Header{}, errors.New("it holds snapshots")
	}
	if version == 3 {
		if err := checkFeatures(be.Uint64(b[72:])); err != nil {
			return qcow2Header{}, err
		}
	}
	return qcow2Header{virtualSize: int64(size)}, nil
}

func checkFeatures(f uint64) error {
	switch {
	case f&featureDirty != 0:
		return errors.New("it was not closed properly")
	case f&featureCorrupt != 0:
		return errors.New("QEMU has marked it as corrupt")
	case f&featureDataFile != 0:
		return errors.New("it keeps its data in another file")
	case f&featureCompression != 0:
		return errors.New("it is not packed with zlib, the only form that older QEMU read")
	case f&featureExtendedL2 != 0:
		return errors.New("it has extended L2 entries, which older QEMU don't read")
	case f != 0:
		return fmt.Errorf("it has unknown features %#x", f)
	}
	return nil
}

// Package volume recognises the file systems that the stand-in meets, by their
// labels: the seed CD, the medium, the FAT partitions and the volume that plays
// C:. Devices are never known by name, since Linux gives those in no fixed
// order.
//
// It reads from an io.ReaderAt and must not import anything of ours.
package volume

import (
	"bytes"
	"encoding/hex"
	"io"
	"strings"
	"unicode/utf16"
)

// Kind is a file system.
type Kind string

// The file systems that Probe tells apart; Unknown is any other, or none.
const (
	Unknown Kind = ""
	ISO9660 Kind = "iso9660" // with or without UDF beside it
	FAT32   Kind = "vfat"
	Ext4    Kind = "ext4" // plays NTFS
)

// Info says what is on a device.
type Info struct {
	Kind  Kind
	Label string
	UDF   bool   // an ISO 9660 volume that carries UDF too
	UUID  string // of ext4, in lower-case hex without dashes
}

// The volume that plays C: carries this UUID, so that the first program to run
// finds it before anything can be read from it.
const SystemUUID = "77626f786e7466738000000000000043"

// Probe looks at the start of a device. A device that can't be read is Unknown.
func Probe(r io.ReaderAt) Info {
	if info := probeExt4(r); info.Kind != Unknown {
		return info
	}
	if info := probeISO(r); info.Kind != Unknown {
		return info
	}
	return probeFAT(r)
}

// probeISO reads the volume descriptors from sector 16 on: the label is the
// Joliet one where there is one, as for Windows.
func probeISO(r io.ReaderAt) Info {
	var info Info
	for sector := int64(16); sector < 32; sector++ {
		b := make([]byte, 2048)
		if _, err := r.ReadAt(b, sector*2048); err != nil {
			return info
		}
		switch string(b[1:6]) {
		case "CD001":
			switch {
			case b[0] == 1:
				info.Kind, info.Label = ISO9660, strings.TrimRight(string(b[40:72]), " \x00")
			case b[0] == 2 && bytes.HasPrefix(b[88:], []byte("%/")) && info.Kind == ISO9660:
				if label := joliet(b[40:72]); label != "" {
					info.Label = label
				}
			}
		case "NSR02", "NSR03":
			info.UDF = info.Kind == ISO9660
		case "BEA01", "TEA01":
		default:
			return info
		}
	}
	return info
}

// joliet decodes UCS-2, big-endian.
func joliet(b []byte) string {
	var units []uint16
	for i := 0; i+1 < len(b); i += 2 {
		units = append(units, uint16(b[i])<<8|uint16(b[i+1]))
	}
	return strings.TrimRight(string(utf16.Decode(units)), " \x00")
}

func probeExt4(r io.ReaderAt) Info {
	b := make([]byte, 1024)
	if _, err := r.ReadAt(b, 1024); err != nil || b[56] != 0x53 || b[57] != 0xEF {
		return Info{}
	}
	return Info{Kind: Ext4, Label: strings.TrimRight(string(b[120:136]), "\x00"), UUID: hex.EncodeToString(b[104:120])}
}

// probeFAT reads the label from the boot sector; Windows and mkfs keep it there
// as well as in the root folder.
func probeFAT(r io.ReaderAt) Info {
	b := make([]byte, 512)
	if _, err := r.ReadAt(b, 0); err != nil || b[510] != 0x55 || b[511] != 0xAA || string(b[82:87]) != "FAT32" {
		return Info{}
	}
	label := strings.TrimRight(string(b[71:82]), " ")
	if label == "NO NAME" {
		label = ""
	}
	return Info{Kind: FAT32, Label: label}
}

package media

import (
	"crypto/sha1" //nolint:gosec // WIM files name their resources by it
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"regexp"
)

// The places in an uncompressed WIM; source: Microsoft's "Windows Imaging File
// Format" paper. The header's GUID is at 24, the entries of the lookup table
// and of the XML at 48 and 72; an entry of that table has 50 bytes, its hash at 30; a directory entry has
// its length at 0, its children's place at 16 and three times from 40 on.
const (
	wimGUID     = 24
	wimLookup   = 48
	wimXML      = 72
	lookupSize  = 50
	lookupHash  = 30
	wimMetadata = 2 // flag of a resource
	entryTimes  = 40
)

// fixWIM makes what wimlib-imagex draws at random or takes from the clock the
// same every time: the file's GUID, and the times of files and images.
func fixWIM(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(data) < 208 || string(data[:8]) != "MSWIM\x00\x00\x00" {
		return errors.New("no WIM came out")
	}
	copy(data[wimGUID:], "wbox-stand-in-01")
	table, err := resource(data, data[wimLookup:])
	if err != nil {
		return err
	}
	for ; len(table) >= lookupSize; table = table[lookupSize:] {
		if table[7]&wimMetadata == 0 {
			continue
		}
		meta, err := resource(data, table)
		if err != nil {
			return err
		}
		// A block of security data comes first, its length at its start, padded
		// to eight bytes.
		if len(meta) < 8 {
			return errors.New("an image without a root folder")
		}
		start := (max(int(binary.LittleEndian.Uint32(meta)), 8) + 7) &^ 7
		if err := fixEntries(meta, start); err != nil {
			return err
		}
		sum := sha1.Sum(meta) //nolint:gosec // WIM files name their resources by it
		copy(table[lookupHash:], sum[:])
	}
	xml, err := resource(data, data[wimXML:])
	if err != nil {
		return err
	}
	fixXMLTimes(xml)
	return os.WriteFile(path, data, 0o644)
}

// A half of a time in the XML, in UTF-16.
var xmlTime = regexp.MustCompile("(H\x00I\x00G\x00H\x00|L\x00O\x00W\x00)P\x00A\x00R\x00T\x00>\x000\x00x\x00((?:[0-9A-F]\x00){8})<")

// fixXMLTimes overwrites the halves of all times in the XML.
func fixXMLTimes(xml []byte) {
	stamp := windowsTime()
	for _, m := range xmlTime.FindAllSubmatchIndex(xml, -1) {
		half := uint32(stamp)
		if xml[m[2]] == 'H' {
			half = uint32(stamp >> 32)
		}
		for i, c := range []byte(fmt.Sprintf("%08X", half)) {
			xml[m[4]+2*i] = c
		}
	}
}

// windowsTime is epoch as Windows counts: 100 nanoseconds since 1601.
func windowsTime() uint64 { return uint64(epoch.Unix()+11644473600) * 10_000_000 }

// resource returns the bytes that a resource's entry describes: its size in
// seven bytes, flags, its offset.
func resource(data, entry []byte) ([]byte, error) {
	size := binary.LittleEndian.Uint64(entry) & (1<<56 - 1)
	offset := binary.LittleEndian.Uint64(entry[8:])
	if offset > uint64(len(data)) || size > uint64(len(data))-offset {
		return nil, fmt.Errorf("a resource of %d bytes at %d lies outside of the file", size, offset)
	}
	return data[offset : offset+size], nil
}

// fixEntries sets the times of a list of directory entries and of those below.
func fixEntries(meta []byte, at int) error {
	stamp := windowsTime()
	for {
		if at < 0 || at+8 > len(meta) {
			return errors.New("a directory entry lies outside of its image")
		}
		length := int(binary.LittleEndian.Uint64(meta[at:]))
		if length <= 8 {
			return nil // the end of the list
		}
		if length < 104 || at+length > len(meta) {
			return errors.New("a directory entry lies outside of its image")
		}
		for i := range 3 {
			binary.LittleEndian.PutUint64(meta[at+entryTimes+8*i:], stamp)
		}
		if children := int(binary.LittleEndian.Uint64(meta[at+16:])); children > 0 {
			if children <= at {
				return errors.New("a directory entry leads back")
			}
			if err := fixEntries(meta, children); err != nil {
				return err
			}
		}
		at += (length + 7) &^ 7
	}
}

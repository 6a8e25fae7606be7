// Package wim reads the list of images from a WIM file, as Setup does before it
// takes one. Only the header and the XML, which is never compressed, are read.
//
// The package must not import anything of ours: the builder has a reader of its
// own, and the two should not agree by being the same code.
package wim

import (
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
)

// Image is one image of the file.
type Image struct {
	Index        int    `xml:"INDEX,attr"` // from 1
	Name         string `xml:"NAME"`
	Display      string `xml:"DISPLAYNAME"`
	Edition      string `xml:"WINDOWS>EDITIONID"`
	Installation string `xml:"WINDOWS>INSTALLATIONTYPE"` // "Server" or "Server Core"
	Arch         int    `xml:"WINDOWS>ARCH"`             // 9 is amd64
	Build        int    `xml:"WINDOWS>VERSION>BUILD"`
	Revision     int    `xml:"WINDOWS>VERSION>SPBUILD"`
}

// maxXML bounds the XML resource; Microsoft's have some tens of kilobytes.
const maxXML = 16 << 20

// Read returns the file's images.
func Read(r io.ReaderAt) ([]Image, error) {
	// The header's layout is that of Microsoft's "Windows Imaging File Format"
	// paper: the XML resource's entry is at 72, its size in 7 bytes with the
	// flags in the eighth, then its offset.
	header := make([]byte, 96)
	if _, err := r.ReadAt(header, 0); err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	if string(header[:8]) != "MSWIM\x00\x00\x00" {
		return nil, errors.New("reading the header: this is no WIM file")
	}
	size := binary.LittleEndian.Uint64(header[72:]) & (1<<56 - 1)
	offset := binary.LittleEndian.Uint64(header[80:])
	if size < 2 || size > maxXML || size%2 != 0 || offset > 1<<62 {
		return nil, fmt.Errorf("reading the header: an XML resource of %d bytes at %d", size, offset)
	}
	raw := make([]byte, size)
	if _, err := r.ReadAt(raw, int64(offset)); err != nil {
		return nil, fmt.Errorf("reading the list of images: %w", err)
	}
	units := make([]uint16, size/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	if units[0] == 0xFEFF {
		units = units[1:]
	}
	var list struct {
		Images []Image `xml:"IMAGE"`
	}
	if err := xml.Unmarshal([]byte(string(utf16.Decode(units))), &list); err != nil {
		return nil, fmt.Errorf("reading the list of images: %w", err)
	}
	return list.Images, nil
}

// Choose returns the image with that name, exactly, or that index. Setup would
// show its list where none fits; the error names the images there are.
func Choose(images []Image, name string, index int) (Image, error) {
	var names []string
	for _, image := range images {
		if (name != "" && image.Name == name) || (name == "" && image.Index == index) {
			return image, nil
		}
		names = append(names, image.Name)
	}
	want := fmt.Sprintf("/IMAGE/NAME %q", name)
	if name == "" {
		want = fmt.Sprintf("/IMAGE/INDEX %d", index)
	}
	return Image{}, fmt.Errorf("install.wim has no image for %s, only %q", want, names)
}

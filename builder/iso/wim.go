package iso

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrSplitWIM says that a WIM is one part of several: an image's files may be
// in another part, so nothing can be said of it.
var ErrSplitWIM = errors.New("it is one part of a split WIM")

// wimHeader is the part of a WIM's header that is needed (Microsoft, "Windows
// Imaging File Format (WIM)"): 208 bytes at the start, little endian.
type wimHeader struct {
	images    uint32
	xmlOffset int64
	xmlSize   int64
}

// ReadEditions reads the editions that a WIM or ESD of size bytes describes in
// its XML, in the order of their indexes. Nothing is decompressed. Errors:
// ErrSplitWIM, a *TruncatedError, else what is damaged.
func ReadEditions(r io.ReaderAt, size int64) ([]Edition, error) {
	h, err := readWIMHeader(r, size)
	if err != nil {
		return nil, err
	}
	data := make([]byte, h.xmlSize)
	if n, err := r.ReadAt(data, h.xmlOffset); n < len(data) {
		return nil, fmt.Errorf("reading its XML: %w", err)
	}
	editions, err := parseWIMXML(data)
	if err != nil {
		return nil, fmt.Errorf("reading its XML: %w", err)
	}
	if uint32(len(editions)) != h.images {
		return nil, fmt.Errorf("its header counts %d images, its XML %d", h.images, len(editions))
	}
	return editions, nil
}

func readWIMHeader(r io.ReaderAt, size int64) (h wimHeader, err error) {
	d, err := readAt(r, size, 0, 208)
	if err != nil {
		return h, fmt.Errorf("reading its header: %w", err)
	}
	if string(d[:8]) != "MSWIM\x00\x00\x00" {
		return h, errors.New("it doesn't begin as a WIM does")
	}
	le := binary.LittleEndian
	const compressed, writing = 4, 0x40
	if le.Uint32(d[16:])&writing != 0 {
		return h, errors.New("it was being written when it was copied")
	}
	if parts := le.Uint16(d[42:]); parts > 1 {
		return h, fmt.Errorf("%w: %d of %d", ErrSplitWIM, le.Uint16(d[40:]), parts)
	}
	// A resource header: 7 bytes of size, flags in the 8th, offset, original size.
	first, offset := le.Uint64(d[72:]), le.Uint64(d[80:])
	stored := first & (1<<56 - 1)
	switch {
	case first>>56&compressed != 0:
		return h, errors.New("its XML is compressed, which no WIM of Microsoft's is")
	case stored > maxXML:
		return h, fmt.Errorf("its XML has %d bytes, more than any real one", stored)
	case offset > uint64(size) || stored > uint64(size)-offset:
		return h, &TruncatedError{"its XML", int64(min(offset, 1<<62)) + int64(stored), size}
	case stored == 0:
		return h, errors.New("it has no XML, so it tells no edition")
	}
	return wimHeader{le.Uint32(d[44:]), int64(offset), int64(stored)}, nil
}

// wimXML is the XML of a WIM, as far as it is needed.
type wimXML struct {
	XMLName xml.Name `xml:"WIM"`
	Images  []struct {
		Index       int    `xml:"INDEX,attr"`
		Name        string `xml:"NAME"`
		DisplayName string `xml:"DISPLAYNAME"`
		Bytes       int64  `xml:"TOTALBYTES"`
		Windows     struct {
			Arch         *int     `xml:"ARCH"`
			EditionID    string   `xml:"EDITIONID"`
			Installation string   `xml:"INSTALLATIONTYPE"`
			Languages    []string `xml:"LANGUAGES>LANGUAGE"`
			Build        int      `xml:"VERSION>BUILD"`
			SPBuild      int      `xml:"VERSION>SPBUILD"`
		} `xml:"WINDOWS"`
	} `xml:"IMAGE"`
}

// parseWIMXML reads UTF-16LE text with a byte order mark.
func parseWIMXML(data []byte) ([]Edition, error) {
	if len(data) < 2 || data[0] != 0xff || data[1] != 0xfe {
		return nil, errors.New("it isn't UTF-16 with a byte order mark")
	}
	text := utf16Text(data[2:], binary.LittleEndian)
	dec := xml.NewDecoder(bytes.NewReader([]byte(strings.TrimRight(text, "\x00"))))
	// A declaration of UTF-16 is true of what was decoded above.
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	var doc wimXML
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	var out []Edition
	for _, i := range doc.Images {
		e := Edition{
			Index: i.Index, Name: i.Name, DisplayName: i.DisplayName, EditionID: i.Windows.EditionID,
			InstallationType: i.Windows.Installation, Build: i.Windows.Build, SPBuild: i.Windows.SPBuild,
			Languages: i.Windows.Languages, Bytes: i.Bytes,
		}
		if i.Windows.Arch != nil {
			e.Arch = archName(*i.Windows.Arch)
		}
		out = append(out, e)
	}
	return out, nil
}

// archName names a processor as Go does, from PROCESSOR_ARCHITECTURE_* of
// Windows' SYSTEM_INFO.
func archName(code int) string {
	switch code {
	case 0:
		return "386"
	case 5:
		return "arm"
	case 6:
		return "ia64"
	case 9:
		return "amd64"
	case 12:
		return "arm64"
	}
	return fmt.Sprintf("unknown-%d", code)
}

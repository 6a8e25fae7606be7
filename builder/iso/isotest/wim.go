package isotest

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"unicode/utf16"

	"github.com/wbox-dev/wbox/builder/iso"
)

// WIM gives a WIM's header and XML, without any file.
func WIM(editions []iso.Edition) []byte {
	data := UTF16(XML(editions))
	d := make([]byte, 208, 208+len(data))
	le := binary.LittleEndian
	copy(d, "MSWIM\x00\x00\x00")
	le.PutUint32(d[8:], 208)      // the header's size
	le.PutUint32(d[12:], 0x10d00) // version 1.13
	le.PutUint16(d[40:], 1)       // part 1
	le.PutUint16(d[42:], 1)       // of 1
	le.PutUint32(d[44:], uint32(len(editions)))
	le.PutUint64(d[72:], uint64(len(data))|2<<56) // 2: metadata
	le.PutUint64(d[80:], 208)
	le.PutUint64(d[88:], uint64(len(data)))
	return append(d, data...)
}

// XML gives what a WIM tells of its editions. One without an Arch tells none.
func XML(editions []iso.Edition) string {
	var b bytes.Buffer
	b.WriteString("<WIM><TOTALBYTES>1557</TOTALBYTES>")
	for _, e := range editions {
		fmt.Fprintf(&b, "<IMAGE INDEX=\"%d\"><TOTALBYTES>%d</TOTALBYTES><WINDOWS>", e.Index, e.Bytes)
		if code, ok := map[string]int{"386": 0, "arm": 5, "ia64": 6, "amd64": 9, "arm64": 12}[e.Arch]; ok {
			fmt.Fprintf(&b, "<ARCH>%d</ARCH>", code)
		}
		element(&b, "EDITIONID", e.EditionID)
		element(&b, "INSTALLATIONTYPE", e.InstallationType)
		b.WriteString("<LANGUAGES>")
		for _, l := range e.Languages {
			element(&b, "LANGUAGE", l)
		}
		fmt.Fprintf(&b, "</LANGUAGES><VERSION><MAJOR>10</MAJOR><MINOR>0</MINOR><BUILD>%d</BUILD><SPBUILD>%d</SPBUILD></VERSION></WINDOWS>",
			e.Build, e.SPBuild)
		element(&b, "NAME", e.Name)
		element(&b, "DISPLAYNAME", e.DisplayName)
		b.WriteString("</IMAGE>")
	}
	b.WriteString("</WIM>")
	return b.String()
}

func element(b *bytes.Buffer, name, value string) {
	b.WriteString("<" + name + ">")
	_ = xml.EscapeText(b, []byte(value)) // a buffer takes everything
	b.WriteString("</" + name + ">")
}

// UTF16 encodes text as a WIM does: little endian, with a byte order mark.
func UTF16(s string) []byte {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return out
}

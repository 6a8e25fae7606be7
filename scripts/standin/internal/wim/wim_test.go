package wim

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"
)

// file makes a WIM of a header and an XML resource.
func file(xml string) []byte {
	var body []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + xml)) {
		body = binary.LittleEndian.AppendUint16(body, u)
	}
	header := make([]byte, 208)
	copy(header, "MSWIM\x00\x00\x00")
	binary.LittleEndian.PutUint64(header[72:], uint64(len(body))|2<<56)
	binary.LittleEndian.PutUint64(header[80:], 208)
	return append(header, body...)
}

const two = `<WIM><IMAGE INDEX="1"><NAME>A Core</NAME><WINDOWS><ARCH>9</ARCH><EDITIONID>E</EDITIONID>` +
	`<INSTALLATIONTYPE>Server Core</INSTALLATIONTYPE><VERSION><BUILD>20348</BUILD><SPBUILD>587</SPBUILD></VERSION></WINDOWS></IMAGE>` +
	`<IMAGE INDEX="2"><NAME>A</NAME></IMAGE></WIM>`

func TestRead(t *testing.T) {
	images, err := Read(bytes.NewReader(file(two)))
	if err != nil {
		t.Fatal(err)
	}
	want := Image{Index: 1, Name: "A Core", Edition: "E", Installation: "Server Core", Arch: 9, Build: 20348, Revision: 587}
	if len(images) != 2 || images[0] != want {
		t.Errorf("got %+v", images)
	}
}

func TestChoose(t *testing.T) {
	images := []Image{{Index: 1, Name: "A Core"}, {Index: 2, Name: "A"}}
	for _, c := range []struct {
		name  string
		index int
		want  int // 0: refused
	}{{"A", 0, 2}, {"A Core", 0, 1}, {"a", 0, 0}, {"A ", 0, 0}, {"", 1, 1}, {"", 3, 0}} {
		got, err := Choose(images, c.name, c.index)
		if (err != nil) != (c.want == 0) || got.Index != c.want {
			t.Errorf("%q %d: %+v, %v", c.name, c.index, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), `"A Core" "A"`) {
			t.Errorf("%v does not name the images", err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(two))
	f.Add(file("<WIM>"))
	f.Add([]byte("MSWIM\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Read(bytes.NewReader(data)); err == nil && len(data) < 96 {
			t.Error("accepted a file without a header")
		}
	})
}

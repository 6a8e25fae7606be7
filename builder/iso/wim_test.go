package iso_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

func TestReadEditions(t *testing.T) {
	want := append(isotest.Editions("2025"),
		iso.Edition{Index: 5, Name: "Windows PE <x> & Größe", Arch: "arm64"}, iso.Edition{Index: 6, Name: "no processor told"})
	wim := isotest.WIM(want)
	got, err := iso.ReadEditions(bytes.NewReader(wim), int64(len(wim)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
}

func TestReadEditionsOfOddXML(t *testing.T) {
	for name, xml := range map[string]string{
		"declared": `<?xml version="1.0" encoding="UTF-16"?><WIM><IMAGE INDEX="1"><NAME>n</NAME></IMAGE></WIM>`,
		"zeros":    "<WIM><IMAGE INDEX=\"1\"><NAME>n</NAME></IMAGE></WIM>\x00\x00",
		"spaces":   "\r\n<WIM>\r\n <IMAGE INDEX=\"1\"> <NAME>n</NAME><WINDOWS><VERSION><BUILD> 7 </BUILD></VERSION></WINDOWS></IMAGE></WIM>\n",
	} {
		wim := withXML(xml)
		got, err := iso.ReadEditions(bytes.NewReader(wim), int64(len(wim)))
		if err != nil || len(got) != 1 || got[0].Index != 1 || got[0].Name != "n" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// withXML gives a WIM of one image with a text as its XML.
func withXML(xml string) []byte {
	wim := isotest.WIM(isotest.Editions("2022")[:1])[:208]
	data := isotest.UTF16(xml)
	binary.LittleEndian.PutUint64(wim[72:], uint64(len(data)))
	return append(wim, data...)
}

func TestDamagedWIM(t *testing.T) {
	le := binary.LittleEndian
	whole := isotest.WIM(isotest.Editions("2022"))
	for _, c := range []struct {
		name   string
		change func(d []byte) []byte
		want   string
	}{
		{"empty", func([]byte) []byte { return nil }, "reading its header"},
		{"half a header", func(d []byte) []byte { return d[:100] }, "reading its header"},
		{"cut off", func(d []byte) []byte { return d[:len(d)-1] }, "its XML reaches to byte"},
		{"another file", func(d []byte) []byte { d[0] = 'X'; return d }, "doesn't begin as a WIM"},
		{"being written", func(d []byte) []byte { d[16] = 0x40; return d }, "was being written"},
		{"split", func(d []byte) []byte { d[42] = 3; return d }, "one part of a split WIM: 1 of 3"},
		{"no XML", func(d []byte) []byte { le.PutUint64(d[72:], 0); return d }, "no XML"},
		{"compressed XML", func(d []byte) []byte { d[79] = 4; return d }, "compressed"},
		{"terabytes of XML", func(d []byte) []byte { le.PutUint32(d[75:], 1<<31); return d }, "more than any real one"},
		{"XML beyond the end", func(d []byte) []byte { le.PutUint64(d[80:], 1<<63); return d }, "its XML reaches to byte"},
		{"XML of zeros", func(d []byte) []byte { clear(d[208:]); return d }, "isn't UTF-16"},
		{"count", func(d []byte) []byte { d[44] = 3; return d }, "counts 3 images, its XML 4"},
		{"not XML", func([]byte) []byte { return withXML("hello") }, "reading its XML"},
		{"not closed", func([]byte) []byte { return withXML("<WIM><IMAGE>") }, "reading its XML"},
		{"another document", func([]byte) []byte { return withXML("<html></html>") }, "reading its XML"},
		{"build that is no number", func([]byte) []byte {
			return withXML("<WIM><IMAGE INDEX='1'><WINDOWS><VERSION><BUILD>x</BUILD></VERSION></WINDOWS></IMAGE></WIM>")
		}, "reading its XML"},
	} {
		d := c.change(append([]byte{}, whole...))
		_, err := iso.ReadEditions(bytes.NewReader(d), int64(len(d)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if split := strings.HasPrefix(c.name, "split"); errors.Is(err, iso.ErrSplitWIM) != split {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func FuzzReadEditions(f *testing.F) {
	f.Add(isotest.WIM(isotest.Editions("2022")))
	f.Add(withXML("<WIM/>"))
	f.Fuzz(func(t *testing.T, d []byte) {
		editions, err := iso.ReadEditions(bytes.NewReader(d), int64(len(d)))
		if err != nil {
			return
		}
		m := iso.Media{Path: "x.iso", Editions: editions}
		if e, err := m.Select("2022", iso.Core); err == nil && (e.Arch != "amd64" || e.Build != 20348) {
			t.Errorf("selected %+v", e)
		}
	})
}

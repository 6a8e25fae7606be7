package volume

import (
	"bytes"
	"testing"
)

// image makes an image of that many bytes with parts of it written.
func image(size int, parts map[int]string) []byte {
	b := make([]byte, size)
	for at, s := range parts {
		copy(b[at:], s)
	}
	return b
}

func TestProbe(t *testing.T) {
	const sector = 2048
	utf16 := "\x00w\x00b\x00o\x00x\x00 \x00s\x00e\x00e\x00d\x00 \x00 \x00 \x00 \x00 \x00 \x00 "
	for name, c := range map[string]struct {
		data []byte
		want Info
	}{
		"empty": {nil, Info{}},
		"zeros": {image(64*sector, nil), Info{}},
		"ISO 9660": {image(64*sector, map[int]string{16*sector + 0: "\x01CD001", 16*sector + 40: "WBOXSEED        ", 17*sector + 0: "\xffCD001"}),
			Info{Kind: ISO9660, Label: "WBOXSEED"}},
		"Joliet": {image(64*sector, map[int]string{16 * sector: "\x01CD001", 16*sector + 40: "WBOX_SEED       ",
			17 * sector: "\x02CD001", 17*sector + 40: utf16, 17*sector + 88: "%/E", 18 * sector: "\xffCD001"}),
			Info{Kind: ISO9660, Label: "wbox seed"}},
		"bridge": {image(64*sector, map[int]string{16 * sector: "\x01CD001", 16*sector + 40: "MEDIUM ", 17 * sector: "\xffCD001",
			18 * sector: "\x00BEA01", 19 * sector: "\x00NSR02", 20 * sector: "\x00TEA01"}),
			Info{Kind: ISO9660, Label: "MEDIUM", UDF: true}},
		"FAT32":                 {image(4096, map[int]string{71: "WBOX       ", 82: "FAT32   ", 510: "\x55\xaa"}), Info{Kind: FAT32, Label: "WBOX"}},
		"FAT32 without a label": {image(4096, map[int]string{71: "NO NAME    ", 82: "FAT32   ", 510: "\x55\xaa"}), Info{Kind: FAT32}},
		"ext4": {image(4096, map[int]string{1024 + 56: "\x53\xef", 1024 + 104: "0123456789abcdef", 1024 + 120: "Windows"}),
			Info{Kind: Ext4, Label: "Windows", UUID: "30313233343536373839616263646566"}},
	} {
		if got := Probe(bytes.NewReader(c.data)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func FuzzProbe(f *testing.F) {
	f.Add(image(40*2048, map[int]string{16 * 2048: "\x01CD001", 17 * 2048: "\x02CD001", 17*2048 + 88: "%/E"}))
	f.Add(image(2048, map[int]string{82: "FAT32   ", 510: "\x55\xaa"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if info := Probe(bytes.NewReader(data)); info.Kind == Unknown && info != (Info{}) {
			t.Errorf("an unknown volume with %+v", info)
		}
	})
}

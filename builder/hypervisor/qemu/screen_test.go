package qemu

import (
	"bytes"
	"image/color"
	"strings"
	"testing"
)

func TestDecodePPM(t *testing.T) {
	img, err := decodePPM(strings.NewReader("P6\n2 1\n255\n\x01\x02\x03\xff\x00\x0a"))
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds().Dx() != 2 || img.Bounds().Dy() != 1 ||
		img.At(0, 0) != (color.RGBA{1, 2, 3, 255}) || img.At(1, 0) != (color.RGBA{255, 0, 10, 255}) {
		t.Errorf("got %v: %v %v", img.Bounds(), img.At(0, 0), img.At(1, 0))
	}
	for name, in := range map[string]string{
		"empty": "", "another format": "P5\n1 1\n255\n\x00", "no size": "P6\n",
		"no pixels": "P6\n1 1\n255\n", "short": "P6\n2 1\n255\n\x01\x02\x03\x04", "no column": "P6\n0 1\n255\n",
		"16 bits": "P6\n1 1\n65535\n\x00\x00\x00\x00\x00\x00", "negative": "P6\n-1 1\n255\n\x00", "huge": "P6\n99999 99999\n255\n",
	} {
		if _, err := decodePPM(strings.NewReader(in)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecodePPM(f *testing.F) {
	f.Add([]byte("P6\n2 1\n255\n\x01\x02\x03\xff\x00\x0a"))
	f.Add([]byte("P6\n16384 16384\n255\n\x00"))
	f.Add([]byte("P6 1 1 255 "))
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := decodePPM(bytes.NewReader(data))
		if err != nil {
			return
		}
		b := img.Bounds()
		if 3*b.Dx()*b.Dy() > len(data) {
			t.Errorf("%v pixels from %d bytes", b, len(data))
		}
		img.At(b.Dx()-1, b.Dy()-1)
	})
}

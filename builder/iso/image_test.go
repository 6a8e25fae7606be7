package iso_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"
	"testing/fstest"
	"time"

	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

// noise gives n bytes that no sector repeats.
func noise(n int) []byte {
	out := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(out)
	return out
}

func open(t *testing.T, image []byte) *iso.Image {
	t.Helper()
	img, err := iso.NewImage(bytes.NewReader(image), int64(len(image)))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestUDFContentInEveryForm(t *testing.T) {
	data := noise(5*2048 + 7)
	for _, f := range []isotest.File{
		{Data: data, Form: isotest.Short},
		{Data: data, Form: isotest.Long},
		{Data: data[:1000], Form: isotest.Embedded},
		{Data: data[:1000], Form: isotest.Embedded, Extended: true},
		{Data: data, Form: isotest.Short, Pieces: 5},
		{Data: data, Form: isotest.Long, Pieces: 3, Extended: true},
		{Data: data, Form: isotest.Short, Pieces: 6, Chain: true},
		{Data: data, Form: isotest.Long, Pieces: 6, Chain: true},
		{Data: data[:4096], Form: isotest.Short, Hole: 3000},
		{Data: nil, Form: isotest.Short},
		{Data: nil, Form: isotest.Embedded},
	} {
		t.Run(fmt.Sprintf("%d bytes form %d pieces %d chain %v hole %d", len(f.Data), f.Form, f.Pieces, f.Chain, f.Hole), func(t *testing.T) {
			f.Path = "sources/install.wim"
			img := open(t, isotest.UDF{Label: "X", Files: []isotest.File{f}}.Bytes())
			want := append(append([]byte{}, f.Data...), make([]byte, f.Hole)...)
			got, err := fs.ReadFile(img.FS(), f.Path)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(want))
			}
			checkReadAt(t, img.FS(), f.Path, want)
		})
	}
}

// checkReadAt reads pieces that begin and end anywhere.
func checkReadAt(t *testing.T, files fs.FS, name string, want []byte) {
	t.Helper()
	f, err := files.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for off := 0; off <= len(want); off += 1021 {
		for _, n := range []int{1, 2048, 5000} {
			p := make([]byte, n)
			m, err := f.(io.ReaderAt).ReadAt(p, int64(off))
			end := min(off+n, len(want))
			if m != end-off || !bytes.Equal(p[:m], want[off:end]) {
				t.Errorf("%d bytes at %d: %d other ones", n, off, m)
			}
			if (m < n) != errors.Is(err, io.EOF) {
				t.Errorf("%d bytes at %d: %d, %v", n, off, m, err)
			}
		}
	}
}

func TestUDFNamesAndTimes(t *testing.T) {
	names := []string{"Autounattend.xml", "Größe.txt", "日本語/名前 😀.txt", "a/b/c/d/e/f/g/h/i/j.txt"}
	var in []isotest.File
	for _, n := range names {
		in = append(in, isotest.File{Path: n, Data: []byte(n)})
	}
	img := open(t, isotest.UDF{Label: "Größe", Files: in}.Bytes())
	if err := fstest.TestFS(img.FS(), names...); err != nil {
		t.Fatal(err)
	}
	if img.Label() != "Größe" {
		t.Errorf("label %q", img.Label())
	}
	info, err := fs.Stat(img.FS(), "autoUNATTEND.xml")
	if err != nil {
		t.Fatal(err)
	}
	if when := time.Date(2022, 3, 4, 12, 0, 5, 0, time.UTC); info.Name() != names[0] || !info.ModTime().Equal(when) {
		t.Errorf("%s of %s", info.Name(), info.ModTime())
	}
	for _, name := range []string{"autounattend", "a/b/x", "autounattend.xml/x"} {
		if _, err := img.FS().Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := img.FS().Open("../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("../x: %v", err)
	}
}

func TestExactNameComesFirst(t *testing.T) {
	img := open(t, isotest.UDF{Label: "X", Files: []isotest.File{
		{Path: "README", Data: []byte("upper")}, {Path: "readme", Data: []byte("lower")},
	}}.Bytes())
	for name, want := range map[string]string{"README": "upper", "readme": "lower", "ReadMe": "upper"} {
		if got, err := fs.ReadFile(img.FS(), name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestMainDescriptorsDamagedTheCopyServes(t *testing.T) {
	image := isotest.UDF{Label: "COPY", Files: []isotest.File{{Path: "a", Data: []byte("b")}}}.Bytes()
	copy(image[34*2048+300:], "scratched")
	if img := open(t, image); img.Label() != "COPY" {
		t.Errorf("label %q", img.Label())
	}
	copy(image[50*2048+300:], "scratched")
	if _, err := iso.NewImage(bytes.NewReader(image), int64(len(image))); err == nil {
		t.Error("both are damaged, and it opened")
	}
}

// TestTruncated cuts an image at every sector: it never opens, and from the
// descriptors on it is known why.
func TestTruncated(t *testing.T) {
	image := isotest.UDF{Label: "X", Files: []isotest.File{{Path: "a", Data: noise(9000)}}}.Bytes()
	for n := 0; n < len(image); n += 2048 {
		_, err := iso.NewImage(bytes.NewReader(image[:n]), int64(n))
		var short *iso.TruncatedError
		switch {
		case n <= 16*2048:
			if !errors.Is(err, iso.ErrNotISO) {
				t.Errorf("%d bytes: %v", n, err)
			}
		case n == 17*2048: // the descriptors end before their terminator
		case !errors.As(err, &short):
			t.Errorf("%d bytes: %v", n, err)
		case n > 21*2048 && (short.Want != int64(len(image)) || short.Have != int64(n)):
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

package iso_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wbox-dev/wbox/builder/iso"
)

// seedFiles are the files of a seed that has a bit of everything.
func seedFiles() []iso.File {
	out := []iso.File{
		iso.FromBytes("Autounattend.xml", []byte("<unattend/>")),
		iso.FromBytes("scripts/10-Install-Features.ps1", []byte("exit 0\r\n")),
		iso.FromBytes("scripts/10-install-features.ps1.log", nil),
		iso.FromBytes("Größe 日本語.txt", []byte("x")),
		iso.FromBytes(".hidden", []byte("dot")),
		iso.FromBytes("no-extension", noise(2048)),
		iso.FromBytes(strings.Repeat("long-name-", 6)+".txt", noise(2049)),
		iso.FromBytes(strings.Repeat("long-name-", 5)+"2.txt", noise(2047)),
		iso.FromBytes("a/b/c/d/e/f/g/h/i/j/k/l/deep.txt", []byte("twelve")),
		iso.FromBytes("payload/big.bin", noise(11<<20)),
	}
	for i := range 200 { // so that a folder has several sectors
		out = append(out, iso.FromBytes(fmt.Sprintf("many/file-number-%03d.dat", i), []byte{byte(i)}))
	}
	return out
}

func content(t *testing.T, f iso.File) []byte {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSeedReadsBack(t *testing.T) {
	files := seedFiles()
	img := open(t, seed(t, files...))
	if img.Label() != "WBOX" || img.VolumeID() != "WBOX" {
		t.Errorf("label %q, volume %q", img.Label(), img.VolumeID())
	}
	var want, got []string
	for _, f := range files {
		want = append(want, f.Path)
		data, err := fs.ReadFile(img.FS(), f.Path)
		if err != nil || !bytes.Equal(data, content(t, f)) {
			t.Errorf("%s: %d bytes, %v; want %d", f.Path, len(data), err, f.Size)
		}
	}
	err := fs.WalkDir(img.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, p)
		}
		return err
	})
	slices.Sort(want)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\ngot  %q\nwant %q", err, got, want)
	}
	small := open(t, seed(t, files[:9]...)) // TestFS reads byte by byte
	if err := fstest.TestFS(small.FS(), files[0].Path, files[8].Path); err != nil {
		t.Error(err)
	}
}

// TestSeedOfPlainISO9660 hides the Joliet side: the same contents are there
// under short names.
func TestSeedOfPlainISO9660(t *testing.T) {
	image := seed(t, seedFiles()...)
	copy(image[17*2048:], image[18*2048:19*2048])
	img := open(t, image)
	for name, size := range map[string]int{
		"AUTOUNATTEND.XML": 11, "SCRIPTS/10_INSTALL_FEATURES.PS1": 8, "SCRIPTS/10_INSTALL_FEATURES_PS1.LOG": 0, "_HIDDEN": 3,
		"NO_EXTENSION": 2048, "LONG_NAME_LONG_NAME_LONG_NA.TXT": 2047, "LONG_NAME_LONG_NAME_LONG__1.TXT": 2049, "GR__E____.TXT": 1,
		"A/B/C/D/E/F/G/H/I/J/K/L/DEEP.TXT": 6,
	} {
		if data, err := fs.ReadFile(img.FS(), name); err != nil || len(data) != size {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(data), err, size)
		}
	}
}

// TestSeedIsTheSameEverywhere pins the bytes: a change of the format changes
// the keys of everything that was made from a seed.
func TestSeedIsTheSameEverywhere(t *testing.T) {
	files := []iso.File{
		iso.FromBytes("Autounattend.xml", []byte("<unattend/>")), iso.FromBytes("scripts/b.ps1", []byte("b")), iso.FromBytes("scripts/a.ps1", []byte("a")),
	}
	const want = "bf98e22e7e1d8cef4147ba94f6b9e5d25a08d333e707460351d2cd66401bd5c1"
	got := fmt.Sprintf("%x", sha256.Sum256(seed(t, files...)))
	if got != want {
		t.Errorf("sha256 %s, want %s", got, want)
	}
	slices.Reverse(files)
	if again := fmt.Sprintf("%x", sha256.Sum256(seed(t, files...))); again != got {
		t.Error("the order of the files changed the seed")
	}
}

// TestSeedStructure checks what readers rely on and ours doesn't look at.
func TestSeedStructure(t *testing.T) {
	image := seed(t, seedFiles()...)
	le, be := binary.LittleEndian, binary.BigEndian
	for sector := range 2 {
		d := image[(16+sector)*2048:]
		if total := le.Uint32(d[80:]); int(total)*2048 != len(image) || be.Uint32(d[84:]) != total {
			t.Errorf("descriptor %d: %d sectors of %d", sector, total, len(image)/2048)
		}
		size := le.Uint32(d[132:])
		tableL := image[le.Uint32(d[140:])*2048:][:size]
		tableM := image[be.Uint32(d[148:])*2048:][:size]
		number := 0
		for at := 0; at < len(tableL); number++ {
			name := int(tableL[at])
			where, parent := le.Uint32(tableL[at+2:]), int(le.Uint16(tableL[at+6:]))
			if be.Uint32(tableM[at+2:]) != where || int(be.Uint16(tableM[at+6:])) != parent || parent > max(number, 1) {
				t.Errorf("path table %d, entry %d: parent %d", sector, number+1, parent)
			}
			if self := image[where*2048:]; le.Uint32(self[2:]) != where || self[33] != 0 {
				t.Errorf("path table %d, entry %d: no folder at sector %d", sector, number+1, where)
			}
			at += 8 + name + name%2
		}
		if number != 16 { // the root, a to l, many, payload, scripts
			t.Errorf("path table %d: %d folders", sector, number)
		}
	}
}

func TestSeedRefusesNames(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"", "empty name"},
		{"/a", "empty name"},
		{"a//b", "empty name"},
		{"a/", "empty name"},
		{"../a", "ends in a dot"},
		{"./a", "ends in a dot"},
		{"a.", "ends in a dot"},
		{"a /b", "ends in a dot or a space"},
		{`a\b`, "not allowed"},
		{"C:a", "not allowed"},
		{"a;1", "not allowed"},
		{"what?", "not allowed"},
		{"tab\t", "not allowed"},
		{"con", "a device"},
		{"x/Nul.txt", "a device"},
		{"com1.tar.gz", "a device"},
		{"LPT³", "a device"},
		{"😀", "two bytes"},
		{"\xff", "UTF-8"},
		{strings.Repeat("x", 65), "has 65 characters"},
		{strings.Repeat("abcdefgh/", 30) + "x", "more than 240"},
		{strings.Repeat("a/", 70) + "x", "folders deep"},
	} {
		err := iso.WriteSeed(t.Context(), io.Discard, "WBOX", []iso.File{iso.FromBytes(c.name, nil)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.name, err, c.want)
		}
	}
	fine := []string{"console.txt", "com10", "COM", "com.txt", "lpt", "null", "a b", "x.y.z", strings.Repeat("ü", 64)}
	for _, name := range fine {
		if err := iso.WriteSeed(t.Context(), io.Discard, "WBOX", []iso.File{iso.FromBytes(name, nil)}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestSeedRefusesTwins(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"a", "a", "there twice"}, {"a", "a/b", "there twice"}, {"a/b", "a", "there twice"},
		{"readme", "README", "only in case"}, {"x/1", "X/2", "only in case"}, {"größe", "GRÖßE", "only in case"}, {"a", "A/b", "only in case"},
	} {
		err := iso.WriteSeed(t.Context(), io.Discard, "WBOX", []iso.File{iso.FromBytes(c.a, nil), iso.FromBytes(c.b, nil)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %q: %v, want %q", c.a, c.b, err, c.want)
		}
	}
}

func TestSeedRefusesLabels(t *testing.T) {
	for label, ok := range map[string]bool{
		"WBOX": true, "A": true, "ABCDEFGHIJ_12345": true, "": false, "ABCDEFGHIJK_12345": false, "wbox": false, "W BOX": false, "WBÖX": false,
	} {
		if err := iso.WriteSeed(t.Context(), io.Discard, label, nil); (err == nil) != ok {
			t.Errorf("%q: %v", label, err)
		}
	}
}

func TestCreateSeed(t *testing.T) {
	dir := t.TempDir()
	host := filepath.Join(dir, "host.bin")
	if err := os.WriteFile(host, noise(5000), 0o644); err != nil {
		t.Fatal(err)
	}
	fromDisk, err := iso.FromDisk("payload/x.bin", host)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "seed.iso")
	if err := iso.CreateSeed(t.Context(), path, "SEED", []iso.File{fromDisk}); err != nil {
		t.Fatal(err)
	}
	img, err := iso.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if got, err := fs.ReadFile(img.FS(), "payload/x.bin"); err != nil || !bytes.Equal(got, noise(5000)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := iso.FromDisk("x", dir); err == nil {
		t.Error("a folder was taken for a file")
	}
}

// TestCreateSeedLeavesNothingHalf gives a source that changes its size, and a
// context that ends.
func TestCreateSeedLeavesNothingHalf(t *testing.T) {
	whole := iso.FromBytes("x", noise(5000))
	shorter, longer, gone := whole, whole, whole
	shorter.Size, longer.Size = 5001, 4999
	gone.Open = func() (io.ReadCloser, error) { return nil, fs.ErrNotExist }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		file iso.File
		want string
	}{
		{"shorter", t.Context(), shorter, "after 5000 of 5001"}, {"longer", t.Context(), longer, "more than 4999"},
		{"gone", t.Context(), gone, "not exist"}, {"cancelled", ended, whole, "canceled"},
	} {
		dir := t.TempDir()
		err := iso.CreateSeed(c.ctx, filepath.Join(dir, "seed.iso"), "SEED", []iso.File{c.file})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: %v is left, %v", c.name, left, err)
		}
	}
	if err := iso.CreateSeed(ended, filepath.Join(t.TempDir(), "none", "seed.iso"), "SEED", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// FuzzSeed writes any path that is allowed and reads it back.
func FuzzSeed(f *testing.F) {
	f.Add("Autounattend.xml", "scripts/ü.ps1")
	f.Add("a/b", "a/B.c")
	f.Fuzz(func(t *testing.T, a, b string) {
		files := []iso.File{iso.FromBytes(a, []byte(a)), iso.FromBytes(b, []byte(b))}
		var out bytes.Buffer
		if iso.WriteSeed(context.Background(), &out, "FUZZ", files) != nil {
			return
		}
		img := open(t, out.Bytes())
		for _, name := range []string{a, b} {
			if got, err := fs.ReadFile(img.FS(), name); err != nil || string(got) != name {
				t.Errorf("%q: %q, %v", name, got, err)
			}
		}
	})
}

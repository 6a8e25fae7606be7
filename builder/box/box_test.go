package box

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func TestWriteLibvirt(t *testing.T) {
	b, path := goodBox(t), filepath.Join(t.TempDir(), "x.box")
	var last, total int64
	if err := WriteLibvirt(t.Context(), b, path, func(done, all int64) { last, total = done, all }); err != nil {
		t.Fatal(err)
	}
	if last != 3<<20 || total != 3<<20 {
		t.Errorf("progress ended at %d of %d", last, total)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f) // the standard library's, as another opinion
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %c %o %d/%d %q %d", h.Name, h.Typeflag, h.Mode, h.Uid, h.Gid, h.Uname, h.ModTime.Unix()))
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if want := `{
  "provider": "libvirt",
  "format": "qcow2",
  "virtual_size": 3,
  "architecture": "amd64"
}
`; h.Name == metadataFile && string(data) != want {
			t.Errorf("metadata.json:\n%s", data)
		}
	}
	want := "metadata.json 0 644 0/0 \"\" 0\ninfo.json 0 644 0/0 \"\" 0\nVagrantfile 0 644 0/0 \"\" 0\nbox.img 0 644 0/0 \"\" 0"
	if got := strings.Join(list, "\n"); got != want {
		t.Errorf("members:\n%s", got)
	}
	report, err := Check(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if report.VirtualGiB != 3 || report.VirtualSize != b.VirtualSize || report.DiskSize != 3<<20 ||
		report.Info["kubernetes"] != "v1.37.2" || !bytes.Equal(report.Vagrantfile, b.Vagrantfile) {
		t.Errorf("report %+v", report)
	}
	if info, err := f.Stat(); err != nil || report.Size != info.Size() || report.SHA256 != mustSum(t, path) {
		t.Errorf("size %d, sum %s", report.Size, report.SHA256)
	}
}

func mustSum(t *testing.T, path string) string {
	t.Helper()
	s, err := fileSum(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBoxIsReproducible(t *testing.T) {
	b := goodBox(t)
	sums := map[string]bool{}
	for _, procs := range []int{1, 2, 3, 8} {
		old := runtime.GOMAXPROCS(procs)
		path := filepath.Join(t.TempDir(), "x.box")
		err := WriteLibvirt(t.Context(), b, path, nil)
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		sums[mustSum(t, path)] = true
	}
	if len(sums) != 1 {
		t.Errorf("%d different boxes", len(sums))
	}
}

func TestWriteLibvirtRefuses(t *testing.T) {
	be := binary.BigEndian
	cases := map[string]func(b []byte){
		"raw image":        func(b []byte) { b[0] = 0 },
		"version 1":        func(b []byte) { be.PutUint32(b[4:], 1) },
		"backing file":     func(b []byte) { be.PutUint64(b[8:], 500) },
		"encrypted":        func(b []byte) { be.PutUint32(b[32:], 1) },
		"cut short":        func(b []byte) { be.PutUint64(b[40:], 4<<20) },
		"L1 behind end":    func(b []byte) { be.PutUint32(b[36:], 1<<31) },
		"snapshots":        func(b []byte) { be.PutUint32(b[60:], 1) },
		"dirty":            func(b []byte) { be.PutUint64(b[72:], featureDirty) },
		"zstd":             func(b []byte) { be.PutUint64(b[72:], featureCompression) },
		"external data":    func(b []byte) { be.PutUint64(b[72:], featureDataFile) },
		"unknown feature":  func(b []byte) { be.PutUint64(b[72:], 1<<40) },
		"other size":       func(b []byte) { be.PutUint64(b[24:], 1<<30) },
		"impossible size":  func(b []byte) { be.PutUint64(b[24:], 1<<63) },
		"no virtual bytes": func(b []byte) { be.PutUint64(b[24:], 0) },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			b := goodBox(t)
			if err := os.WriteFile(b.Disk, fakeDisk(b.VirtualSize, change), 0o600); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := WriteLibvirt(t.Context(), b, filepath.Join(dir, "x.box"), nil); err == nil {
				t.Error("the box was written")
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		dir := t.TempDir()
		err := WriteLibvirt(ctx, goodBox(t), filepath.Join(dir, "x.box"), func(int64, int64) { cancel() })
		if left, _ := os.ReadDir(dir); !errors.Is(err, context.Canceled) || len(left) != 0 {
			t.Errorf("got %v, left %v", err, left)
		}
	})
}

// archive packs members as given.
func archive(t *testing.T, headers []tar.Header, data []string) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for i, h := range headers {
		h.Size = int64(len(data[i]))
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, data[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unpacked(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// TestRealImage has qemu-img make the disk.
func TestRealImage(t *testing.T) {
	program, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("needs qemu-img")
	}
	dir := t.TempDir()
	for options, good := range map[string]bool{"compat=1.1": true, "compat=0.10": true, "compression_type=zstd": false, "extended_l2=on": false} {
		b := goodBox(t)
		b.Disk, b.VirtualSize = filepath.Join(dir, options+".qcow2"), 60<<30
		if out, err := exec.CommandContext(t.Context(), program, "create", "-q", "-f", "qcow2", "-o", options, b.Disk, "60G").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		path := filepath.Join(dir, options+".box")
		err := WriteLibvirt(t.Context(), b, path, nil)
		if good && err == nil {
			_, err = Check(t.Context(), path)
		}
		if (err == nil) != good {
			t.Errorf("%s: %v", options, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	const meta = `{"provider":"libvirt","format":"qcow2","virtual_size":3,"architecture":"amd64"}`
	disk := string(fakeDisk(5<<29, nil))
	build := func(change func(h *[]tar.Header, d *[]string)) []byte {
		h := []tar.Header{{Name: metadataFile}, {Name: infoFile}, {Name: vagrantFile}, {Name: diskFile}}
		d := []string{meta, "{}", "# ruby", disk}
		if change != nil {
			change(&h, &d)
		}
		return archive(t, h, d)
	}
	good := build(nil)
	check := func(data []byte) error {
		path := filepath.Join(t.TempDir(), "x.box")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Check(t.Context(), path)
		return err
	}
	if err := check(good); err != nil {
		t.Fatalf("the good box: %v", err)
	}
	withMeta := func(s string) []byte { return build(func(_ *[]tar.Header, d *[]string) { (*d)[0] = s }) }
	add := func(h tar.Header, data string) []byte {
		return build(func(hs *[]tar.Header, d *[]string) { *hs, *d = append(*hs, h), append(*d, data) })
	}
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	cases := map[string][]byte{
		"empty":             {},
		"HTML":              []byte("<html><body>login</body></html>"),
		"plain tar":         unpacked(t, good),
		"truncated":         good[:len(good)/2],
		"last byte missing": good[:len(good)-1],
		"wrong gzip CRC":    flip(len(good) - 8),
		"wrong gzip length": flip(len(good) - 1),
		"bit in the middle": flip(len(good) / 2),
		"garbage behind":    append(bytes.Clone(good), "garbage"...),
		"two archives":      append(bytes.Clone(good), archive(t, []tar.Header{{Name: "x"}}, []string{strings.Repeat("x", 2<<20)})...),
		"smaller disk":      withMeta(strings.Replace(meta, "3", "2", 1)),
		"size as text":      withMeta(strings.Replace(meta, "3", `"3"`, 1)),
		"broken size":       withMeta(strings.Replace(meta, "3", "2.5", 1)),
		"trailing comma":    withMeta(strings.Replace(meta, "}", ",}", 1)),
		"version 2":         withMeta(`{"provider":"libvirt","disks":[{"path":"box.img"}]}`),
		"other provider":    withMeta(strings.Replace(meta, "libvirt", "virtualbox", 1)),
		"in a folder":       build(func(h *[]tar.Header, _ *[]string) { (*h)[0].Name = "box/metadata.json" }),
		"no disk":           build(func(h *[]tar.Header, d *[]string) { *h, *d = (*h)[:3], (*d)[:3] }),
		"raw disk":          build(func(_ *[]tar.Header, d *[]string) { (*d)[3] = strings.Repeat("x", 4096) }),
		"tiny disk":         build(func(_ *[]tar.Header, d *[]string) { (*d)[3] = "QFI\xfb" }),
		"twice":             add(tar.Header{Name: metadataFile}, meta),
		"parent folder":     add(tar.Header{Name: "../evil"}, "x"),
		"absolute":          add(tar.Header{Name: "/evil"}, "x"),
		"link":              add(tar.Header{Name: "info", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""),
		"hard link":         add(tar.Header{Name: "info", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, ""),
		"device":            add(tar.Header{Name: "info", Typeflag: tar.TypeChar}, ""),
		"large info":        build(func(_ *[]tar.Header, d *[]string) { (*d)[1] = `{"a":"` + strings.Repeat("x", 2<<20) + `"}` }),
		"info is not a map": build(func(_ *[]tar.Header, d *[]string) { (*d)[1] = `["a"]` }),
		"disk is a symlink": build(func(h *[]tar.Header, d *[]string) {
			(*h)[3].Typeflag, (*h)[3].Linkname, (*d)[3] = tar.TypeSymlink, "/dev/sda", ""
		}),
		"disk with a parent": build(func(_ *[]tar.Header, d *[]string) { (*d)[3] = string(fakeDisk(5<<29, func(b []byte) { b[15] = 1 })) }),
	}
	for name, data := range cases {
		if err := check(data); fault.ClassOf(err) != fault.Input {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Check(t.Context(), filepath.Join(t.TempDir(), "none")); fault.ClassOf(err) != fault.Input {
		t.Errorf("no file: %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for name, data := range map[string]string{metadataFile: "{}", infoFile: "{}", vagrantFile: "", diskFile: string(fakeDisk(1, nil)[:4096])} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			f.Fatal(err)
		}
		if _, err := io.WriteString(w, data); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(plain.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		// Packed here, so that the archive inside is what is tried.
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = z.Write(data)
		z.Close()
		if r, err := checkArchive(&packed); err == nil && (r.VirtualSize <= 0 || r.VirtualGiB != virtualGiB(r.VirtualSize)) {
			t.Errorf("accepted %+v", r)
		}
		_, _ = checkArchive(bytes.NewReader(data))
	})
}

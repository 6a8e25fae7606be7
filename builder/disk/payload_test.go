package disk

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func programs() map[string][]byte {
	return map[string][]byte{
		"kubelet.exe":         noise(2, 5*mib+7),
		"kube-proxy.exe":      noise(3, 2*mib),
		"kubeadm.exe":         noise(4, 1),
		"kube-log-runner.exe": noise(5, 512),
	}
}

// partOf returns the bytes of the disk between two offsets.
func (f fixture) partOf(t *testing.T, disk string, from, to int64) []byte {
	t.Helper()
	data, err := f.tool.readBytes(t.Context(), window{disk, from, to - from}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWritePayload(t *testing.T) {
	f := newFixture(t)
	before := fileSum(t, f.base)
	overlay := f.overlay(t, "o.qcow2")
	files := payload(t, programs())
	if err := f.tool.WritePayload(t.Context(), overlay, files, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if fileSum(t, f.base) != before {
		t.Error("the base was written to")
	}
	got, err := f.tool.ReadPayload(t.Context(), overlay, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range got {
		names = append(names, g.Name)
		if data := programs()[g.Name]; g.SHA256 != sum(data) || g.Size != int64(len(data)) {
			t.Errorf("%s: read back as %+v", g.Name, g)
		}
	}
	if s := strings.Join(names, " "); s != "kube-log-runner.exe kube-proxy.exe kubeadm.exe kubelet.exe" {
		t.Errorf("names %s", s)
	}
	// Outside the payload partition and the two partition tables nothing changes.
	for _, r := range [][2]int64{{0, 512}, {34 * 512, payloadAt.Offset()}, {payloadAt.Offset() + payloadAt.Size(), 255 * mib}} {
		if !bytes.Equal(f.partOf(t, f.base, r[0], r[1]), f.partOf(t, overlay, r[0], r[1])) {
			t.Errorf("bytes %d to %d have changed", r[0], r[1])
		}
	}
	ps, err := f.tool.Partitions(t.Context(), overlay, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ps {
		want := uint64(0)
		if p.Number == 3 {
			want = 0xD000000000000000
		}
		if p.Attributes != want {
			t.Errorf("partition %d has attributes %#x, want %#x", p.Number, p.Attributes, want)
		}
	}
	// A second write over the first is the fast path's usual case.
	files = payload(t, map[string][]byte{"kubelet.exe": []byte("other")})
	if err := f.tool.WritePayload(t.Context(), overlay, files, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if got, err := f.tool.ReadPayload(t.Context(), overlay, t.TempDir()); err != nil || len(got) != 1 || got[0].SHA256 != files[0].SHA256 {
		t.Errorf("after the second write: %+v, %v", got, err)
	}
}

func TestPayloadIsReproducible(t *testing.T) {
	f := newFixture(t)
	var first []byte
	for _, name := range []string{"a.qcow2", "b.qcow2"} {
		overlay := f.overlay(t, name)
		// Map order and file paths differ from run to run.
		if err := f.tool.WritePayload(t.Context(), overlay, payload(t, programs()), t.TempDir()); err != nil {
			t.Fatal(err)
		}
		data := f.partOf(t, overlay, payloadAt.Offset(), payloadAt.Offset()+payloadAt.Size())
		if first == nil {
			first = data
		} else if !bytes.Equal(first, data) {
			t.Error("the same files gave other bytes")
		}
	}
}

func TestPayloadIsSoundForOthers(t *testing.T) {
	fsck, mtype, mattrib := needProgram(t, "fsck.vfat"), needProgram(t, "mtype"), needProgram(t, "mattrib")
	f := newFixture(t)
	overlay := f.overlay(t, "o.qcow2")
	if err := f.tool.WritePayload(t.Context(), overlay, payload(t, programs()), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "w.img")
	if err := f.tool.read(t.Context(), window{overlay, payloadAt.Offset(), payloadAt.Size()}, image); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "MTOOLS_SKIP_CHECK=0", "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	if out := run(fsck, "-n", "-v", image); strings.Contains(strings.ToLower(out), "differ") || strings.Contains(out, "Free cluster summary wrong") {
		t.Errorf("fsck.vfat complains:\n%s", out)
	}
	for name, data := range programs() {
		if got := run(mtype, "-i", image, "::/"+name); got != string(data) {
			t.Errorf("mtools reads %d bytes of %s, want %d", len(got), name, len(data))
		}
	}
	if out := run(mattrib, "-i", image, "::/kubelet.exe"); !strings.Contains(out, "R") {
		t.Errorf("kubelet.exe is not read-only: %s", out)
	}
	t.Run("sgdisk", func(t *testing.T) {
		sgdisk := needProgram(t, "sgdisk")
		raw := filepath.Join(t.TempDir(), "d.raw")
		if err := f.tool.read(t.Context(), window{overlay, 0, 256 * mib}, raw); err != nil {
			t.Fatal(err)
		}
		if out := run(sgdisk, "--verify", raw); !strings.Contains(out, "No problems found") {
			t.Errorf("sgdisk: %s", out)
		}
		if out := run(sgdisk, "--info=3", raw); !strings.Contains(out, "D000000000000000") {
			t.Errorf("sgdisk: %s", out)
		}
	})
}

func TestWritePayloadRefuses(t *testing.T) {
	f := newFixture(t)
	one := func(name string) []PayloadFile { return payload(t, map[string][]byte{name: []byte("data")}) }
	changed := one("kubelet.exe")
	changed[0].SHA256 = sum([]byte("DATA"))
	shorter := one("kubelet.exe")
	shorter[0].Size++
	gone := one("kubelet.exe")
	gone[0].Path += "-gone"
	huge := payload(t, map[string][]byte{"kubelet.exe": make([]byte, 71*mib), "kubeadm.exe": make([]byte, mib)})
	cases := map[string]struct {
		files []PayloadFile
		says  string
	}{
		"name with slash":   {[]PayloadFile{{Name: "a/b"}}, "plain file name"},
		"name ends in dot":  {[]PayloadFile{{Name: "a."}}, "plain file name"},
		"the index's name":  {one("PAYLOAD.json"), "taken"},
		"same name twice":   {append(one("Kubelet.exe"), one("kubelet.exe")...), "taken"},
		"content changed":   {changed, "content has changed"},
		"size changed":      {shorter, "size has changed"},
		"file gone":         {gone, "can't be read"},
		"more than fits":    {huge, "don't fit"},
		"empty file":        {payload(t, map[string][]byte{"a": {}}), "is empty"},
		"digest not a hash": {[]PayloadFile{{Name: "a", SHA256: "ab", Size: 1}}, "not a SHA-256"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := f.tool.WritePayload(t.Context(), f.overlay(t, "o.qcow2"), c.files, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q", err, c.says)
			}
			if name != "digest not a hash" && fault.ClassOf(err) != fault.Input {
				t.Errorf("class %d", fault.ClassOf(err))
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.tool.WritePayload(ctx, f.overlay(t, "o.qcow2"), one("a"), t.TempDir()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no partition table", func(t *testing.T) {
		path := filepath.Join(f.dir, "empty.qcow2")
		if err := f.tool.Create(t.Context(), path, 64*mib); err != nil {
			t.Fatal(err)
		}
		if err := f.tool.WritePayload(t.Context(), path, one("a"), t.TempDir()); err == nil {
			t.Error("no error")
		}
	})
}

func TestReadPayloadFindsDamage(t *testing.T) {
	f := newFixture(t)
	data := noise(5, mib)
	for name, at := range map[string]func(l fatLayout) int64{
		"content":   func(l fatLayout) int64 { return l.at(2+1+1) + 1000 }, // after directory and index
		"index":     func(l fatLayout) int64 { return l.at(2+1) + 5 },
		"directory": func(l fatLayout) int64 { return l.at(2) + dirEntrySize*4 + 26 }, // kubelet.exe's first cluster
		"one FAT":   func(l fatLayout) int64 { return (l.reserved+l.perFAT)*sectorSize + 40 },
	} {
		t.Run(name, func(t *testing.T) {
			overlay := f.overlay(t, "o.qcow2")
			if err := f.tool.WritePayload(t.Context(), overlay, payload(t, map[string][]byte{"kubelet.exe": data}), t.TempDir()); err != nil {
				t.Fatal(err)
			}
			l, err := layoutFAT(payloadAt.Size())
			if err != nil {
				t.Fatal(err)
			}
			offset := payloadAt.Offset() + at(l)
			sector := f.partOf(t, overlay, offset/512*512, offset/512*512+512)
			sector[offset%512] ^= 0x41
			if err := f.tool.writeBytes(t.Context(), overlay, offset/512*512, sector, t.TempDir()); err != nil {
				t.Fatal(err)
			}
			if _, err := f.tool.ReadPayload(t.Context(), overlay, t.TempDir()); err == nil {
				t.Error("the damage was not found")
			}
		})
	}
}

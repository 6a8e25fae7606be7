package disk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func TestFindMissing(t *testing.T) {
	_, err := Find(filepath.Join(t.TempDir(), "no-such-qemu-img"))
	if fault.ClassOf(err) != fault.Host {
		t.Errorf("got %v", err)
	}
}

func TestOverlayIsRelative(t *testing.T) {
	tool, dir := needTool(t), t.TempDir()
	for _, d := range []string{"parent", "child", "later/child"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	base, overlay := filepath.Join(dir, "parent", "b:x,y.qcow2"), filepath.Join(dir, "child", "o.qcow2")
	if err := tool.Create(t.Context(), base, 8*mib); err != nil {
		t.Fatal(err)
	}
	if err := tool.CreateOverlay(t.Context(), base, overlay); err != nil {
		t.Fatal(err)
	}
	same := filepath.Join(dir, "parent", "same.qcow2") // in the base's own folder
	if err := tool.CreateOverlay(t.Context(), base, same); err != nil {
		t.Fatal(err)
	}
	for path, backing := range map[string]string{overlay: "../parent/b:x,y.qcow2", same: "./b:x,y.qcow2"} {
		info, err := tool.Info(t.Context(), path)
		if err != nil || info.Backing != backing || info.BackingFormat != "qcow2" || info.VirtualSize != 8*mib {
			t.Errorf("%s: %+v, %v", path, info, err)
		}
	}
	// The overlay is going to lie one folder deeper.
	final := filepath.Join(dir, "later", "child", "o.qcow2")
	if err := tool.SetBacking(t.Context(), overlay, base, filepath.Dir(final)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(overlay, final); err != nil {
		t.Fatal(err)
	}
	if err := tool.Compare(t.Context(), base, final); err != nil {
		t.Errorf("the moved overlay: %v", err)
	}
}

func TestFlatten(t *testing.T) {
	f := newFixture(t)
	overlay := f.overlay(t, "o.qcow2")
	if err := f.tool.writeBytes(t.Context(), overlay, 200*mib, noise(9, mib), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	var sums []string
	for i, opts := range []FlattenOptions{{}, {}, {Compress: true}, {Compress: true}} {
		flat := filepath.Join(f.dir, string(rune('a'+i))+".qcow2")
		if err := f.tool.Flatten(t.Context(), overlay, flat, opts); err != nil {
			t.Fatal(err)
		}
		info, err := f.tool.Info(t.Context(), flat)
		if err != nil || info.Backing != "" || info.VirtualSize != 256*mib || info.Compression != "zlib" {
			t.Errorf("%+v, %v", info, err)
		}
		sums = append(sums, fileSum(t, flat))
	}
	if sums[0] != sums[1] || sums[2] != sums[3] || sums[0] == sums[2] {
		t.Errorf("the same image should flatten to the same bytes, packed ones to others: %q", sums)
	}
}

func TestCompareFindsHalfAnImage(t *testing.T) {
	f := newFixture(t)
	overlay := f.overlay(t, "o.qcow2")
	if err := f.tool.writeBytes(t.Context(), overlay, 200*mib, noise(9, 512), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := f.tool.Compare(t.Context(), f.base, overlay); err == nil || !strings.Contains(err.Error(), "differ") {
		t.Errorf("one other sector: %v", err)
	}
	short := filepath.Join(f.dir, "short.qcow2")
	if err := f.tool.Create(t.Context(), short, 128*mib); err != nil {
		t.Fatal(err)
	}
	if err := f.tool.Compare(t.Context(), f.base, short); err == nil {
		t.Error("images of other lengths are called equal")
	}
	if err := f.tool.Compare(t.Context(), f.base, f.base+"-gone"); err == nil || strings.Contains(err.Error(), "differ") {
		t.Errorf("a missing image: %v", err)
	}
}

func TestWindowName(t *testing.T) {
	name, err := window{`C:\a "b",c\d.qcow2`, 512, 1024}.name()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Driver       string
		Offset, Size int64
		File         struct {
			Driver string
			File   struct{ Driver, Filename string }
		}
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(name, "json:")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Driver != "raw" || got.Offset != 512 || got.Size != 1024 || got.File.Driver != "qcow2" ||
		got.File.File.Driver != "file" || got.File.File.Filename != `C:\a "b",c\d.qcow2` {
		t.Errorf("%s", name)
	}
}

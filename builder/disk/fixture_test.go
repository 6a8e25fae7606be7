package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	diskfile "github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
	diskgpt "github.com/diskfs/go-diskfs/partition/gpt"
)

const mib = int64(1) << 20

// fixture is a sealed disk with the partitions of the answer files, smaller.
type fixture struct {
	tool *Tool
	dir  string
	base string // qcow2
}

// payloadAt says where the fixture's payload partition lies.
var payloadAt = Partition{Number: 3, First: 53 * mib / sectorSize, Last: (53+72)*mib/sectorSize - 1}

func needTool(t *testing.T) *Tool {
	t.Helper()
	tool, err := Find("")
	if err != nil {
		t.Skipf("needs qemu-img: %v", err)
	}
	return tool
}

// needProgram returns the path of a program that is only there to check us.
func needProgram(t *testing.T, name string) string {
	t.Helper()
	for _, path := range []string{name, "/sbin/" + name, "/usr/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Skipf("needs %s", name)
	return ""
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{tool: needTool(t), dir: t.TempDir()}
	raw := filepath.Join(f.dir, "fixture.raw")
	storage, err := diskfile.CreateFromPath(raw, 256*mib)
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	sectors := func(m int64) uint64 { return uint64(m * mib / sectorSize) }
	part := func(i int, typ diskgpt.Type, name string, from, to int64) *diskgpt.Partition {
		return &diskgpt.Partition{Index: i, Type: typ, Name: name, Start: sectors(from), End: sectors(to) - 1}
	}
	table := &diskgpt.Table{LogicalSectorSize: sectorSize, PhysicalSectorSize: sectorSize, ProtectiveMBR: true,
		Partitions: []*diskgpt.Partition{
			part(1, diskgpt.EFISystemPartition, "EFI system partition", 1, 37),
			part(2, diskgpt.MicrosoftReserved, "Microsoft reserved partition", 37, 53),
			part(3, diskgpt.MicrosoftBasicData, "Basic data partition", 53, 125),
			part(4, diskgpt.MicrosoftBasicData, "Basic data partition", 125, 255),
		}}
	w, err := storage.Writable()
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Write(w, 256*mib); err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		from, size int64
		label      string
	}{{1, 36, "System"}, {53, 72, "WBOX"}} {
		if _, err := fat32.Create(storage, v.size*mib, v.from*mib, sectorSize, v.label, true); err != nil {
			t.Fatal(err)
		}
		fs, err := fat32.Read(storage, v.size*mib, v.from*mib, sectorSize)
		if err != nil {
			t.Fatal(err)
		}
		if err := fs.SetLabel(v.label); err != nil {
			t.Fatal(err)
		}
	}
	// Something that must survive where C: would be.
	if _, err := w.WriteAt(noise(1, 3*mib), 130*mib); err != nil {
		t.Fatal(err)
	}
	f.base = filepath.Join(f.dir, "base.qcow2")
	if _, err := f.tool.run(t.Context(), "convert", "-f", "raw", "-O", "qcow2", raw, f.base); err != nil {
		t.Fatal(err)
	}
	return f
}

// writeTable returns a disk of size bytes with the partition table.
func writeTable(t testing.TB, path string, table *diskgpt.Table, size int64) memory {
	t.Helper()
	storage, err := diskfile.CreateFromPath(path, size)
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	w, err := storage.Writable()
	if err == nil {
		err = table.Write(w, size)
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// overlay returns a new overlay of the base.
func (f fixture) overlay(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := f.tool.CreateOverlay(t.Context(), f.base, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// noise returns n bytes that don't compress, the same ones for the same seed.
func noise(seed byte, n int64) []byte {
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{seed})
	r.Read(data) //nolint:errcheck // it never fails
	return data
}

// payload writes files of the given contents and returns them as a payload.
func payload(t *testing.T, contents map[string][]byte) []PayloadFile {
	t.Helper()
	dir := t.TempDir()
	var files []PayloadFile
	for name, data := range contents {
		path := filepath.Join(dir, "file-"+name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, PayloadFile{Name: name, Path: path, SHA256: sum(data), Size: int64(len(data))})
	}
	return files
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func fileSum(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

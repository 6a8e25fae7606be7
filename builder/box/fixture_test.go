package box

import (
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// fakeDisk is a qcow2 header with some data behind it.
func fakeDisk(virtualSize int64, change func(b []byte)) []byte {
	b := make([]byte, 3<<20)
	be := binary.BigEndian
	copy(b, "QFI\xfb")
	be.PutUint32(b[4:], 3)
	be.PutUint32(b[20:], 16) // cluster bits
	be.PutUint64(b[24:], uint64(virtualSize))
	be.PutUint32(b[36:], 1)       // L1 entries
	be.PutUint64(b[40:], 3*65536) // L1 table
	be.PutUint32(b[100:], 112)    // header length
	for i := 4 << 16; i < len(b); i++ {
		b[i] = byte(i * i >> 9)
	}
	if change != nil {
		change(b)
	}
	return b
}

// goodBox returns a box of 2.5 GiB whose disk lies in a temporary folder.
func goodBox(t testing.TB) Box {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "disk.qcow2")
	const size = 5 << 29
	if err := os.WriteFile(disk, fakeDisk(size, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	vagrantfile, err := LibvirtVagrantfile(Hardware{})
	if err != nil {
		t.Fatal(err)
	}
	return Box{Disk: disk, VirtualSize: size, Vagrantfile: vagrantfile,
		Info: map[string]string{"kubernetes": "v1.37.2", "licence": "evaluation"}}
}

// writeBox writes a good box and returns its path.
func writeBox(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.box")
	if err := WriteLibvirt(t.Context(), goodBox(t), path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

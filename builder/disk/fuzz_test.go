package disk

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"

	diskgpt "github.com/diskfs/go-diskfs/partition/gpt"
)

// memory is a disk or a part of one in memory.
type memory []byte

func (m memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[off:])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

func (m memory) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(m)) {
		return 0, io.ErrShortWrite
	}
	return copy(m[off:], p), nil
}

func (m memory) at(offset int64, n int) ([]byte, error) {
	if offset < 0 || n < 0 || offset+int64(n) > int64(len(m)) {
		return nil, errors.New("out of range")
	}
	return append([]byte(nil), m[offset:offset+int64(n)]...), nil
}

// refresh makes the checksums of both copies of a partition table right.
func (m memory) refresh() {
	le := binary.LittleEndian
	if len(m) < 2*sectorSize {
		return
	}
	for _, at := range []uint64{1, le.Uint64(m[sectorSize+32:])} {
		if at >= uint64(len(m)/sectorSize) {
			continue
		}
		h := m[at*sectorSize:][:sectorSize]
		from, n := le.Uint64(h[72:])*sectorSize, uint64(le.Uint32(h[80:]))*uint64(le.Uint32(h[84:]))
		if from < uint64(len(m)) && n <= uint64(len(m))-from {
			le.PutUint32(h[88:], crc32.ChecksumIEEE(m[from:from+n]))
		}
		le.PutUint32(h[16:], headerSum(h))
	}
}

// smallGPT is a disk of 128 sectors with two partitions, made by go-diskfs.
func smallGPT(t testing.TB) memory {
	t.Helper()
	path := t.TempDir() + "/d"
	table := &diskgpt.Table{LogicalSectorSize: sectorSize, PhysicalSectorSize: sectorSize, ProtectiveMBR: true,
		Partitions: []*diskgpt.Partition{
			{Index: 1, Type: diskgpt.EFISystemPartition, Name: "EFI", Start: 40, End: 49},
			{Index: 3, Type: diskgpt.MicrosoftBasicData, Name: "Basic data partition", Start: 50, End: 59},
		}}
	return writeTable(t, path, table, 128*sectorSize)
}

func FuzzReadGPT(f *testing.F) {
	disk := smallGPT(f)
	le := binary.LittleEndian
	backup := int64(le.Uint64(disk[sectorSize+32:]))
	// Both headers, and the entries that each of them names.
	regions := []int64{sectorSize, backup * sectorSize, 2 * sectorSize, int64(le.Uint64(disk[backup*sectorSize+72:])) * sectorSize}
	f.Add([]byte{}, 128)
	f.Add([]byte{0, 72, 3, 0, 128, 2, 2, 32, 3, 32}, 128)
	f.Add([]byte{1, 80, 8}, 100)
	f.Fuzz(func(t *testing.T, records []byte, sectors int) {
		if sectors < 0 || sectors > 128 {
			return
		}
		m := append(memory(nil), disk[:sectors*sectorSize]...)
		for ; len(records) >= 3; records = records[3:] {
			targets := []byte{records[0] % 4}
			if targets[0] >= 2 {
				targets = []byte{2, 3} // entries change in both copies, else they just differ
			}
			for _, r := range targets {
				if at := regions[r] + int64(records[1]); at < int64(len(m)) {
					m[at] = records[2]
				}
			}
		}
		_, _ = readGPT(m.at, int64(len(m))) // must not panic
		m.refresh()                         // so that more than checksums is tried
		g, err := readGPT(m.at, int64(len(m)))
		if err != nil {
			return
		}
		for i, p := range g.partitions {
			if p.Offset() < 0 || p.Size() <= 0 || p.Offset()+p.Size() > int64(len(m)) {
				t.Fatalf("partition %+v on a disk of %d bytes", p, len(m))
			}
			for _, c := range g.addAttributes(p.Number, AttrHidden) {
				if _, err := m.WriteAt(c.data, c.offset); err != nil {
					t.Fatal(err)
				}
			}
			again, err := readGPT(m.at, int64(len(m)))
			if err != nil {
				return // the copies lie on each other: no sound disk, no harm
			}
			if got := again.partitions[i]; got.Attributes != p.Attributes|AttrHidden || got.First != p.First || got.Last != p.Last {
				t.Fatalf("partition %+v became %+v", p, got)
			}
		}
	})
}

// smallVolume is the smallest volume that we write, with one file.
func smallVolume(t testing.TB) memory {
	t.Helper()
	m := make(memory, 34*mib)
	content := noise(7, 5000)
	files, index, err := payloadIndex([]PayloadFile{{Name: "kube-log-runner.exe", SHA256: sum(content), Size: 5000}})
	if err != nil {
		t.Fatal(err)
	}
	put := func(data []byte) func(io.Writer) error {
		return func(w io.Writer) error { _, err := w.Write(data); return err }
	}
	v := fatVolume{size: int64(len(m)), label: PayloadLabel, files: []fatFile{
		{PayloadIndex, int64(len(index)), put(index)}, {files[0].Name, 5000, put(content)}}}
	if err := v.writeTo(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// patched is a volume with some bytes changed.
type patched struct {
	memory
	changes map[int64]byte
}

func (p patched) ReadAt(b []byte, off int64) (int, error) {
	n, err := p.memory.ReadAt(b, off)
	for at, value := range p.changes {
		if at >= off && at < off+int64(n) {
			b[at-off] = value
		}
	}
	return n, err
}

func FuzzReadPayload(f *testing.F) {
	volume := smallVolume(f)
	l, err := layoutFAT(int64(len(volume)))
	if err != nil {
		f.Fatal(err)
	}
	regions := []int64{0, l.reserved * sectorSize, l.at(2), l.at(3)} // boot sector, FAT, directory, index
	f.Add([]byte{})
	f.Add([]byte{0, 13, 0, 8})
	f.Add([]byte{1, 8, 0, 2, 2, 20, 0, 9, 3, 0, 0, '{'})
	f.Fuzz(func(t *testing.T, records []byte) {
		p := patched{volume, map[int64]byte{}}
		for ; len(records) >= 4; records = records[4:] {
			offset := int64(binary.LittleEndian.Uint16(records[1:]) % 1024)
			at := regions[records[0]%4] + offset
			p.changes[at] = records[3]
			if records[0]%4 == 1 { // both FATs, else they just differ
				p.changes[at+l.perFAT*sectorSize] = records[3]
			}
		}
		files, err := readPayloadFrom(t.Context(), p, int64(len(volume)))
		if err == nil && len(files) > 0 && files[0].Size != 5000 {
			t.Errorf("found %+v", files)
		}
		_, _ = fatLabel(func(off int64, n int) ([]byte, error) {
			b := make([]byte, n)
			_, err := p.ReadAt(b, off)
			return b, err
		})
	})
}

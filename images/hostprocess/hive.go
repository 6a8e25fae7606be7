package hostprocess

import (
	"encoding/binary"
	"time"

	"github.com/wbox-dev/wbox/images/internal/winsec"
)

// hive returns an empty registry hive: format 1.3, one key, which is the root.
// The layout is that of "Windows registry file format specification" by Maxim
// Suhanov: a header block of 4 KiB and one bin of 4 KiB with two cells, the root
// key and its security.
func hive(created time.Time) []byte {
	le := binary.LittleEndian
	const block, rootAt, none = 4096, 0x20, 0xffffffff
	stamp := fileTime(created)
	security := winsec.Descriptor{Owner: winsec.Administrators(), Group: winsec.System(), Allow: []winsec.ACE{
		{Flags: winsec.ContainerInherit, Rights: winsec.KeyAll, Who: winsec.Administrators()},
		{Flags: winsec.ContainerInherit, Rights: winsec.KeyAll, Who: winsec.System()},
	}}.Bytes()
	const name = "wbox-empty"
	keySize := cellSize(0x4c + len(name))
	securityAt := uint32(rootAt + keySize)
	securitySize := cellSize(20 + len(security))

	data := make([]byte, 2*block)
	head, bin := data[:block], data[block:]
	copy(head, "regf")
	for at, n := range map[int]uint32{4: 1, 8: 1, 0x14: 1, 0x18: 3, 0x20: 1, 0x24: rootAt, 0x28: block, 0x2c: 1} {
		le.PutUint32(head[at:], n) // two equal sequence numbers say that it was written to its end
	}
	le.PutUint64(head[0x0c:], stamp)
	var sum uint32
	for at := 0; at < 0x1fc; at += 4 {
		sum ^= le.Uint32(head[at:])
	}
	le.PutUint32(head[0x1fc:], sum)

	copy(bin, "hbin")
	le.PutUint32(bin[8:], block)
	le.PutUint64(bin[0x14:], stamp)

	key := cell(bin[rootAt:], keySize)
	copy(key, "nk")
	const hiveEntry, noDelete, narrowName = 0x04, 0x08, 0x20
	le.PutUint16(key[2:], hiveEntry|noDelete|narrowName)
	le.PutUint64(key[4:], stamp)
	for _, at := range []int{0x1c, 0x20, 0x28, 0x30} { // lists of subkeys, volatile subkeys and values, and the class name
		le.PutUint32(key[at:], none)
	}
	le.PutUint32(key[0x2c:], securityAt)
	le.PutUint16(key[0x48:], uint16(len(name)))
	copy(key[0x4c:], name)

	sk := cell(bin[securityAt:], securitySize)
	copy(sk, "sk")
	le.PutUint32(sk[4:], securityAt) // the list of descriptors is a ring of one
	le.PutUint32(sk[8:], securityAt)
	le.PutUint32(sk[12:], 1)
	le.PutUint32(sk[16:], uint32(len(security))) //nolint:gosec // about 100
	copy(sk[20:], security)

	free := int(securityAt) + securitySize
	le.PutUint32(bin[free:], uint32(block-free)) //nolint:gosec // a positive size is that of a free cell
	return data
}

// cellSize is the size of a cell of n bytes: with the four bytes of its size,
// rounded up.
func cellSize(n int) int { return (4 + n + 7) / 8 * 8 }

// cell marks a cell as used and returns what is in it.
func cell(at []byte, size int) []byte {
	binary.LittleEndian.PutUint32(at, uint32(-size)) //nolint:gosec // a negative size is that of a used cell
	return at[4:size]
}

// fileTime counts from 1601 in units of 100 ns, as Windows does.
func fileTime(t time.Time) uint64 {
	const secondsBefore1970 = 11644473600
	return uint64(max(t.Unix()+secondsBefore1970, 0)) * 1e7 //nolint:gosec // not negative
}

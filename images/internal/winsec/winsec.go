// Package winsec writes Windows security descriptors in their self-relative
// binary form (MS-DTYP 2.4.6): the owners and rights of files in a container
// layer and of keys in a registry hive. It only writes; it imports nothing of
// ours and knows neither layers nor hives.
package winsec

import "encoding/binary"

// SID names an account: its authority (5 is Windows NT, 3 the creator) and the
// numbers below it.
type SID struct {
	Authority byte
	Sub       []uint32
}

// Administrators is S-1-5-32-544 ("BA" in SDDL).
func Administrators() SID { return SID{5, []uint32{32, 544}} }

// Users is S-1-5-32-545 ("BU" in SDDL).
func Users() SID { return SID{5, []uint32{32, 545}} }

// System is S-1-5-18, the account of Windows itself ("SY" in SDDL).
func System() SID { return SID{5, []uint32{18}} }

// CreatorOwner is S-1-3-0, which stands for whoever makes a file ("CO" in SDDL).
func CreatorOwner() SID { return SID{3, []uint32{0}} }

func (s SID) bytes() []byte {
	b := []byte{1, byte(len(s.Sub)), 0, 0, 0, 0, 0, s.Authority}
	for _, n := range s.Sub {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// The flags of an ACE that say what inherits it.
const (
	ObjectInherit    = 0x01 // files below a folder ("OI")
	ContainerInherit = 0x02 // folders below it ("CI")
	InheritOnly      = 0x08 // not the folder itself ("IO")
)

// The rights that descriptors of ours give.
const (
	FileAll     = 0x001f01ff // everything on a file or folder ("FA")
	GenericAll  = 0x10000000 // as FileAll, mapped when it is inherited ("GA")
	ReadExecute = 0x001200a9 // read and run
	AddFile     = 0x00000002 // make a file in a folder ("DC")
	AddFolder   = 0x00000004 // make a folder in a folder ("LC")
	KeyAll      = 0x000f003f // everything on a registry key ("KA")
)

// ACE allows an account something.
type ACE struct {
	Flags  byte
	Rights uint32
	Who    SID
}

func (a ACE) bytes() []byte {
	sid := a.Who.bytes()
	b := []byte{0, a.Flags}                                     // type 0 is "allowed"
	b = binary.LittleEndian.AppendUint16(b, uint16(8+len(sid))) //nolint:gosec // a few dozen bytes
	b = binary.LittleEndian.AppendUint32(b, a.Rights)
	return append(b, sid...)
}

// Descriptor is an owner, a group and who may do what, in that order of ACEs.
type Descriptor struct {
	Owner, Group SID
	Allow        []ACE
}

// Bytes returns the self-relative form: header, owner, group, DACL.
func (d Descriptor) Bytes() []byte {
	const header, daclPresent, selfRelative = 20, 0x0004, 0x8000
	owner, group := d.Owner.bytes(), d.Group.bytes()
	var aces []byte
	for _, a := range d.Allow {
		aces = append(aces, a.bytes()...)
	}
	b := []byte{1, 0}
	b = binary.LittleEndian.AppendUint16(b, daclPresent|selfRelative)
	for _, offset := range []int{header, header + len(owner), 0, header + len(owner) + len(group)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(offset)) //nolint:gosec // below 200
	}
	b = append(append(b, owner...), group...)
	b = append(b, 2, 0) // revision of the ACL
	b = binary.LittleEndian.AppendUint16(b, uint16(8+len(aces)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(d.Allow)))
	return append(append(b, 0, 0), aces...)
}

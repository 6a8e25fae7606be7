package wine

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
)

// PrngDLL returns a bcryptprimitives.dll with the one function that the
// Go runtime wants of it, ProcessPrng, which fills a buffer with random bytes.
// It serves runs under wine only and never enters a box.
func PrngDLL() []byte {
	const (
		align   = 0x200  // of the file
		page    = 0x1000 // of the memory
		textRVA = page
		dataRVA = 2 * page
	)
	code := []byte{
		0x48, 0x85, 0xD2, // test rdx, rdx      (rdx: how many bytes)
		0x74, 0x0F, //       je   done
		0x0F, 0xC7, 0xF0, // next: rdrand eax
		0x73, 0xFB, //       jnc  next          (no random number yet)
		0x88, 0x01, //       mov  [rcx], al     (rcx: where to)
		0x48, 0xFF, 0xC1, // inc  rcx
		0x48, 0xFF, 0xCA, // dec  rdx
		0x75, 0xF1, //       jne  next
		0xB8, 1, 0, 0, 0, // done: mov eax, 1   (TRUE)
		0xC3, //             ret
	}
	exports := exportTable(dataRVA, textRVA, "bcryptprimitives.dll", "ProcessPrng")

	var b bytes.Buffer
	le := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a Buffer takes everything
	dos := make([]byte, 64)
	copy(dos, "MZ")
	dos[60] = 64 // where the PE header begins
	b.Write(dos)
	b.WriteString("PE\x00\x00")
	le(pe.FileHeader{
		Machine: pe.IMAGE_FILE_MACHINE_AMD64, NumberOfSections: 2, SizeOfOptionalHeader: 240,
		Characteristics: pe.IMAGE_FILE_EXECUTABLE_IMAGE | pe.IMAGE_FILE_LARGE_ADDRESS_AWARE | pe.IMAGE_FILE_DLL,
	})
	opt := pe.OptionalHeader64{
		Magic: 0x20b, SizeOfCode: align, SizeOfInitializedData: align, BaseOfCode: textRVA,
		ImageBase: 0x180000000, SectionAlignment: page, FileAlignment: align,
		MajorOperatingSystemVersion: 6, MajorSubsystemVersion: 6, SizeOfImage: 3 * page, SizeOfHeaders: align,
		Subsystem: pe.IMAGE_SUBSYSTEM_WINDOWS_CUI, DllCharacteristics: pe.IMAGE_DLLCHARACTERISTICS_NX_COMPAT,
		SizeOfStackReserve: 1 << 20, SizeOfStackCommit: page, SizeOfHeapReserve: 1 << 20, SizeOfHeapCommit: page,
		NumberOfRvaAndSizes: 16,
	}
	opt.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT] = pe.DataDirectory{VirtualAddress: dataRVA, Size: uint32(len(exports))}
	le(opt)
	le(pe.SectionHeader32{
		Name: [8]uint8{'.', 't', 'e', 'x', 't'}, VirtualSize: uint32(len(code)), VirtualAddress: textRVA,
		SizeOfRawData: align, PointerToRawData: align,
		Characteristics: pe.IMAGE_SCN_CNT_CODE | pe.IMAGE_SCN_MEM_EXECUTE | pe.IMAGE_SCN_MEM_READ,
	})
	le(pe.SectionHeader32{
		Name: [8]uint8{'.', 'e', 'd', 'a', 't', 'a'}, VirtualSize: uint32(len(exports)), VirtualAddress: dataRVA,
		SizeOfRawData: align, PointerToRawData: 2 * align,
		Characteristics: pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ,
	})
	for _, part := range [][]byte{code, exports} {
		b.Write(make([]byte, (align-b.Len()%align)%align))
		b.Write(part)
	}
	b.Write(make([]byte, (align-b.Len()%align)%align))
	return b.Bytes()
}

// exportTable returns the export directory of a library with one function, to
// be loaded at the address at.
func exportTable(at, function uint32, library, name string) []byte {
	const header = 40
	var (
		functions = at + header
		names     = functions + 4
		ordinals  = names + 4
		nameAt    = ordinals + 4 // 2 bytes and 2 of padding
		libraryAt = nameAt + uint32(len(name)) + 1
	)
	var b bytes.Buffer
	for _, v := range []uint32{0, 0, 0, libraryAt, 1 /* first ordinal */, 1, 1, functions, names, ordinals, function, nameAt, 0} {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	b.WriteString(name + "\x00" + library + "\x00")
	return b.Bytes()
}

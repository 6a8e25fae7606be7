package wine

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"testing"
)

func TestPrngDLL(t *testing.T) {
	data := PrngDLL()
	f, err := pe.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 || f.Characteristics&pe.IMAGE_FILE_DLL == 0 || len(f.Sections) != 2 {
		t.Errorf("got %+v", f.FileHeader)
	}
	dir := f.OptionalHeader.(*pe.OptionalHeader64).DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT]
	table, err := f.Section(".edata").Data()
	if err != nil {
		t.Fatal(err)
	}
	at := func(rva uint32) uint32 { return rva - dir.VirtualAddress }
	word := func(off uint32) uint32 { return binary.LittleEndian.Uint32(table[off:]) }
	text := func(rva uint32) string {
		s, _, _ := bytes.Cut(table[at(rva):], []byte{0})
		return string(s)
	}
	if got := text(word(12)); got != "bcryptprimitives.dll" {
		t.Errorf("the library calls itself %q", got)
	}
	if got := text(word(at(word(32)))); got != "ProcessPrng" {
		t.Errorf("it exports %q", got)
	}
	if got := word(at(word(28))); got != f.Section(".text").VirtualAddress {
		t.Errorf("the function is at %#x", got)
	}
}

package kube

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

func TestProcessPrngDLL(t *testing.T) {
	data := processPrngDLL()
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

func TestPrintedVersion(t *testing.T) {
	for out, want := range map[string]string{
		"Kubernetes v1.36.3\r\n":                        "v1.36.3",
		"noise\nKubernetes v1.38.0-alpha.0.2+0123abc\n": "v1.38.0-alpha.0.2+0123abc",
		"Kubernetes v0.0.0-master+$Format:%H$\n":        "",
		"kubelet\n":                                     "",
		"":                                              "",
	} {
		got, err := printedVersion(out)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", out, got, err)
		}
	}
}

func FuzzPrintedVersion(f *testing.F) {
	f.Add("Kubernetes v1.36.3\r\n")
	f.Fuzz(func(t *testing.T, out string) {
		if v, err := printedVersion(out); err == nil {
			if again, err := normalizeVersion(v, true); err != nil || again != v {
				t.Errorf("%q gives %q", out, v)
			}
		}
	})
}

// The folder's own program tells its version, where there is a wine.
func TestDirAsksTheProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("starts wine")
	}
	if _, err := findWine(); err != nil {
		t.Skip(err)
	}
	dir, cache := kubetest.Fixture(t, t.TempDir(), "v1.38.0-alpha.1.5+0123abcd"), t.TempDir()
	ref, err := mustDir(t, dir, Options{CacheDir: cache}).Resolve(t.Context(), report.Discard)
	if err != nil || ref.Version != "v1.38.0-alpha.1.5+0123abcd" {
		t.Errorf("got %q, %v", ref.Version, err)
	}
	if _, err := os.Stat(filepath.Join(cache, "wine")); err != nil {
		t.Error(err)
	}
}

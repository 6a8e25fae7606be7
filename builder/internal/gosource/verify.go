package gosource

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"debug/pe"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// minSize is the smallest file in bytes that is taken for one of the programs.
// A Go program that prints a line is about 1.5 MB for Windows, the smallest
// real one (kube-log-runner) 3.3 MB; a 26 KB kube-proxy.exe was once published
// (kubernetes-sigs/sig-windows-tools#379). Truncation above that is caught
// by the build info and by the sizes of the PE sections.
const minSize = 1 << 20

// Expect is what Verify demands of a file. Empty fields demand nothing.
type Expect struct {
	Name        string         // the program, such as "kubelet"; required
	Packages    []string       // the main package must be one of them
	Match       *regexp.Regexp // what "MODULE PACKAGE" of the main package must match
	Foreign     bool           // it need not be from Go
	GOOS        string         // "windows" (the default) or "linux"
	GOARCH      string         // "amd64" (the default), or another that Linux programs are for
	Field       string         // the flag that a refusal is about; required
	From        string         // goes into the Binary; default: the path
	GoVersion   string         // toolchain, such as "go1.26.10"
	MainVersion string         // version of the main module
	MainSum     string         // "h1:…" of the main module
	Stamps      []string       // texts that must occur in the file, such as the commit
	Standalone  string         // a version that must occur in the file outside of module paths and lists of modules
	IfIn        []string       // packages; a file with code of none of them is asked for no Stamps and no Standalone; nil: always
}

func (e Expect) goos() string {
	if e.GOOS == "" {
		return Windows
	}
	return e.GOOS
}

func (e Expect) goarch() string {
	if e.GOARCH == "" {
		return amd64
	}
	return e.GOARCH
}

func (e Expect) file() string { return FileOf(e.Name, e.goos()) }

// amd64 is the processor of Windows nodes, and of everything that names no other.
const amd64 = "amd64"

// The systems that programs are built for.
const (
	Windows = "windows"
	Linux   = "linux"
)

// FileOf is the name of a program's file on a system.
func FileOf(program, goos string) string {
	if goos == Linux {
		return program
	}
	return program + ".exe"
}

// Verify checks that the file is the program it is taken for: size, PE
// or ELF header, machine, subsystem, Go build info and version stamps. It returns
// the program with its digest. What is wrong with the file is a
// *fault.Problem of class fault.Input.
func Verify(path string, want Expect) (Binary, error) {
	refuse := func(err error) error {
		p := &fault.Problem{Class: fault.Input, Field: want.Field, Value: path, Why: "is refused", Err: err,
			Fix: "give a " + want.file() + " that was built for " + want.goos() + "/" + want.goarch()}
		return p
	}
	f, err := OpenRegular(path)
	if err != nil {
		return Binary{}, refuse(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Binary{}, fmt.Errorf("looking at %s: %w", want.file(), err)
	}
	if err := inspect(f, st.Size(), want); err != nil {
		return Binary{}, refuse(err)
	}
	sum, err := Scan(f, want)
	if err != nil {
		var missing *StampError
		if errors.As(err, &missing) {
			return Binary{}, refuse(err)
		}
		return Binary{}, fmt.Errorf("reading %s: %w", want.file(), err)
	}
	from := want.From
	if from == "" {
		from = path
	}
	return Binary{Name: want.Name, File: filepath.Base(path), SHA256: sum, Size: st.Size(), From: from}, nil
}

// inspect checks everything but the stamps.
func inspect(r io.ReaderAt, size int64, want Expect) error {
	head := make([]byte, 1024)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading its first bytes: %w", err)
	}
	kind := Identify(head[:n])
	switch {
	case want.GOOS == Linux && kind == linuxProgramFor(want.goarch()):
	case want.GOOS == Linux || kind != WindowsProgram:
		return fmt.Errorf("it is %s", kind)
	}
	if size < minSize {
		return fmt.Errorf("its %d bytes are too few for %s (%d at least)", size, want.file(), minSize)
	}
	if want.GOOS == Linux {
		err = inspectELF(r, size)
	} else {
		err = inspectPE(r, size)
	}
	if err != nil {
		return err
	}
	if want.Foreign {
		return nil
	}
	return inspectBuild(r, want)
}

// inspectPE checks the PE headers.
func inspectPE(r io.ReaderAt, size int64) error {
	f, err := pe.NewFile(r)
	if err != nil {
		return fmt.Errorf("it is a Windows program that is damaged, cut off perhaps: %w", err)
	}
	if f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		return fmt.Errorf("it is a Windows program for %s, not for amd64", machineName(f.Machine))
	}
	head, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	switch {
	case !ok:
		return errors.New("it is a Windows program that is damaged: it has no 64-bit header")
	case f.Characteristics&pe.IMAGE_FILE_DLL != 0:
		return errors.New("it is a Windows library (DLL), not a program")
	case head.Subsystem != pe.IMAGE_SUBSYSTEM_WINDOWS_CUI:
		return fmt.Errorf("it is not a console program (subsystem %d)", head.Subsystem)
	}
	for _, s := range f.Sections {
		if end := int64(s.Offset) + int64(s.Size); end > size {
			return fmt.Errorf("it is cut off: section %s ends at byte %d, the file at %d", s.Name, end, size)
		}
	}
	return nil
}

// inspectELF checks the headers of a Linux program.
func inspectELF(r io.ReaderAt, size int64) error {
	f, err := elf.NewFile(r)
	if err != nil {
		return fmt.Errorf("it is a Linux program that is damaged, cut off perhaps: %w", err)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return fmt.Errorf("it is a Linux file of type %s, not a program", f.Type)
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS && (s.Offset > uint64(size) || s.FileSize > uint64(size)-s.Offset) {
			return fmt.Errorf("it is cut off: section %s ends beyond byte %d", s.Name, size)
		}
	}
	return nil
}

func machineName(machine uint16) string {
	switch machine {
	case pe.IMAGE_FILE_MACHINE_ARM64:
		return "arm64"
	case pe.IMAGE_FILE_MACHINE_I386:
		return "386"
	case pe.IMAGE_FILE_MACHINE_ARMNT, pe.IMAGE_FILE_MACHINE_ARM:
		return "arm"
	}
	return fmt.Sprintf("machine %#x", machine)
}

// inspectBuild checks what the Go linker recorded.
func inspectBuild(r io.ReaderAt, want Expect) error {
	info, err := buildinfo.Read(r)
	if err != nil {
		return fmt.Errorf("it has no Go build info, so it isn't %s: %w", want.file(), err)
	}
	if want.Packages != nil && !slices.Contains(want.Packages, info.Path) {
		return fmt.Errorf("it is built from %s, not from %s", info.Path, want.Packages[0])
	}
	if built := info.Main.Path + " " + info.Path; want.Match != nil && !want.Match.MatchString(built) {
		return fmt.Errorf("it is built from %s, so it isn't %s", strings.TrimSpace(built), want.file())
	}
	for _, s := range info.Settings {
		if (s.Key == "GOOS" && s.Value != want.goos()) || (s.Key == "GOARCH" && s.Value != want.goarch()) {
			return fmt.Errorf("it is built with %s=%s", s.Key, s.Value)
		}
	}
	main := info.Main
	if main.Replace != nil {
		main = *main.Replace
	}
	switch {
	case want.GoVersion != "" && info.GoVersion != want.GoVersion:
		return fmt.Errorf("it is built with %s, not with %s", info.GoVersion, want.GoVersion)
	case want.MainVersion != "" && main.Version != want.MainVersion:
		return fmt.Errorf("it is built from %s %s, not from %s", main.Path, main.Version, want.MainVersion)
	case want.MainSum != "" && main.Sum != want.MainSum:
		return fmt.Errorf("it is built from %s with the digest %s, not %s", main.Path, main.Sum, want.MainSum)
	}
	return nil
}

// StampError is a stamp that isn't there.
type StampError struct{ stamp string }

func (e *StampError) Error() string {
	return fmt.Sprintf("it is not stamped: %q does not occur in it", e.stamp)
}

// Scan reads a file once: for its SHA-256 (hex) and for the stamps, of which a
// missing one is a *StampError.
func Scan(f io.ReadSeeker, want Expect) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	const overlap = 256 // more than a stamp is long
	hash := sha256.New()
	found := map[string]bool{}
	standalone, demanded := false, want.IfIn == nil
	buf := make([]byte, overlap+1<<20)
	kept := 0
	for {
		n, err := io.ReadFull(f, buf[kept:])
		hash.Write(buf[kept : kept+n])
		window := buf[:kept+n]
		for _, s := range want.Stamps {
			found[s] = found[s] || bytes.Contains(window, []byte(s))
		}
		standalone = standalone || occursAlone(window, want.Standalone)
		demanded = demanded || holdsCode(window, want.IfIn)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return "", err
		}
		kept = copy(buf, window[len(window)-overlap:])
	}
	for _, s := range want.Stamps {
		if demanded && !found[s] {
			return "", &StampError{s}
		}
	}
	if demanded && want.Standalone != "" && !standalone {
		return "", &StampError{want.Standalone}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// holdsCode says whether the name of something in one of the packages occurs:
// the Go linker writes the names of all functions that a program has.
func holdsCode(data []byte, packages []string) bool {
	return slices.ContainsFunc(packages, func(pkg string) bool { return bytes.Contains(data, []byte(pkg+".")) })
}

// occursAlone says whether version occurs in data other than behind "@" (a
// module path) or a tab (the list of modules that the linker records).
func occursAlone(data []byte, version string) bool {
	if version == "" {
		return false
	}
	for at := 1; at < len(data); {
		i := bytes.Index(data[at:], []byte(version))
		if i < 0 {
			return false
		}
		if before := data[at+i-1]; before != '@' && before != '\t' {
			return true
		}
		at += i + 1
	}
	return false
}

package gosource

import (
	"bytes"
	"fmt"
	"strings"
)

// WindowsProgram is what Identify says of a file that begins like a PE file.
const WindowsProgram = "a Windows program"

// LinuxProgram is what Identify says of an ELF file for amd64.
const LinuxProgram = "a Linux program (ELF, amd64)"

// Identify names what a file is by its first bytes, for people.
func Identify(head []byte) string {
	text := strings.ToLower(strings.TrimLeft(strings.TrimPrefix(string(head), "\xef\xbb\xbf"), " \t\r\n"))
	switch {
	case len(head) == 0:
		return "empty"
	case bytes.HasPrefix(head, []byte("MZ")):
		return WindowsProgram
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return linuxProgramFor(elfMachine(head))
	case hasAnyPrefix(string(head), "\xcf\xfa\xed\xfe", "\xfe\xed\xfa\xcf", "\xca\xfe\xba\xbe"):
		return "a macOS program (Mach-O)"
	case hasAnyPrefix(text, "<!doctype html", "<html"):
		return "an HTML page (a server's error or login page, perhaps)"
	case hasAnyPrefix(text, "<?xml"):
		return "an XML document (a server's error message, perhaps)"
	case hasAnyPrefix(text, "version https://git-lfs"):
		return "a Git LFS pointer, not the file itself"
	case hasAnyPrefix(text, "#!"):
		return "a script"
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return "a zip archive"
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return "a gzip archive"
	}
	return fmt.Sprintf("no Windows program (it begins with %q)", head[:min(len(head), 8)])
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// linuxProgramFor is what Identify says of an ELF file for a processor, "" for
// one that it doesn't know.
func linuxProgramFor(arch string) string {
	if arch != "" {
		arch = ", " + arch
	}
	return strings.Replace(LinuxProgram, ", amd64", arch, 1)
}

// elfMachine returns "amd64" or the like for a little-endian ELF header.
func elfMachine(head []byte) string {
	if len(head) < 20 || head[5] != 1 {
		return ""
	}
	switch uint16(head[18]) | uint16(head[19])<<8 {
	case 62:
		return "amd64"
	case 183:
		return "arm64"
	}
	return ""
}

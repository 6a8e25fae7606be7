package iso

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// openProblem words why the file at path could not be opened as an ISO.
func openProblem(path string, size int64, err error) error {
	var short *TruncatedError
	switch {
	case errors.As(err, &short):
		return problem(path, fmt.Sprintf("it is cut off: expected %d bytes or more, found %d", short.Want, size),
			"download it again and compare its SHA-256", nil)
	case errors.Is(err, ErrNotISO):
		looks := looksLike(path)
		if looks == "" {
			return problem(path, "it is no ISO image", "check that it is the file you meant, or download it again", nil)
		}
		return problem(path, "it is no ISO image but "+looks, fixFor(looks), nil)
	case errors.Is(err, os.ErrPermission):
		return problem(path, "it can't be opened", "check who may read it", err)
	}
	return contentProblem(path, "it can't be read as an ISO image", err)
}

// What a file that is no ISO may look like.
const (
	html  = "an HTML page"
	text  = "a text file"
	zeros = "nothing but zeros so far"
)

func fixFor(looks string) string {
	switch looks {
	case html, text:
		return "download it again: the server sent a page or a message in place of the file"
	case zeros:
		return "let the download end, or start it again"
	}
	return "give the .iso file itself"
}

// magics are the beginnings of files that people take for ISOs.
func magics() []struct{ magic, looks string } {
	return []struct{ magic, looks string }{
		{"PK\x03\x04", "a ZIP archive"},
		{"\x1f\x8b", "a gzip file"},
		{"\xfd7zXZ\x00", "an xz file"},
		{"\x28\xb5\x2f\xfd", "a zstd file"},
		{"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"},
		{"Rar!", "a RAR archive"},
		{"MZ", "a Windows program"},
		{"\x7fELF", "a Linux program"},
		{"MSWIM\x00", "a WIM file"},
		{"QFI\xfb", "a qcow2 disk"},
		{"vhdxfile", "a VHDX disk"},
		{"conectix", "a VHD disk"},
		{"KDMV", "a VMDK disk"},
		{"%PDF", "a PDF document"},
	}
}

// looksLike says what the file at path begins like, or "".
func looksLike(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(f, head) // a short file is as good
	return headLooksLike(head[:n])
}

func headLooksLike(head []byte) string {
	for _, m := range magics() {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.looks
		}
	}
	if len(bytes.Trim(head, "\x00")) == 0 {
		return zeros
	}
	start := strings.ToLower(string(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))))
	for _, tag := range []string{"<!doctype html", "<html", "<head", "<body", "<!--", "<script"} {
		if strings.HasPrefix(start, tag) {
			return html
		}
	}
	// The last character may be cut in two.
	for cut := 0; cut < min(4, len(head)); cut++ {
		if utf8.Valid(head[:len(head)-cut]) && !bytes.ContainsAny(head, "\x00\x01\x02\x03\x04\x05\x06\x07\x08") {
			return text
		}
	}
	return ""
}

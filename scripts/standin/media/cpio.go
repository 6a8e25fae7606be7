package media

import (
	"fmt"
	"io"
)

// cpioFile is one member of an initial RAM disk; folders end in "/".
type cpioFile struct {
	name string
	mode uint32 // permission bits
	data []byte
}

// writeCPIO writes the members as a "newc" archive, the format of Linux's
// Documentation/driver-api/early-userspace/buffer-format.rst, with all times,
// owners and devices zero.
func writeCPIO(w io.Writer, files []cpioFile) error {
	for i, file := range append(files, cpioFile{name: "TRAILER!!!"}) {
		mode, links, name := file.mode|0o100000, 1, file.name
		if n := len(name); name[n-1] == '/' {
			mode, links, name = file.mode|0o040000, 2, name[:n-1]
		}
		if file.name == "TRAILER!!!" {
			mode = 0
		}
		header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
			i+1, mode, 0, 0, links, 0, len(file.data), 0, 0, 0, 0, len(name)+1, 0)
		if err := writePadded(w, header+name+"\x00"); err != nil {
			return err
		}
		if err := writePadded(w, string(file.data)); err != nil {
			return err
		}
	}
	return nil
}

// writePadded writes s and as many zeros as make its length a multiple of four.
func writePadded(w io.Writer, s string) error {
	_, err := io.WriteString(w, s+"\x00\x00\x00"[:(4-len(s)%4)%4])
	return err
}

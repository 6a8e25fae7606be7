package layer

import (
	"archive/tar"
	"context"
	"encoding/binary"
	"io/fs"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// NetBindService is the value of security.capability that "setcap
// cap_net_bind_service=+ep" writes (vfs_cap_data of version 2): the program may
// listen on ports below 1024 whoever runs it.
func NetBindService() []byte {
	const version2, effective, netBindService = 0x02000000, 1, 10
	var b []byte
	for _, n := range []uint32{version2 | effective, 1 << netBindService, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// Linux makes a layer of a Linux image. Everything belongs to root. What can't
// go into it is a *fault.Problem of class fault.Input.
func Linux(ctx context.Context, files []File, opts Options) (v1.Layer, error) {
	files, err := arrange(files, func(s string) string { return s }, func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, f := range files {
		open, size, err := f.content()
		if err != nil {
			return nil, err
		}
		h := tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: size, Mode: linuxMode(f), ModTime: opts.Created.UTC().Truncate(time.Second), Format: tar.FormatPAX}
		if f.isDir() {
			h.Typeflag, h.Name = tar.TypeDir, f.Name+"/"
		}
		if f.Capabilities != nil {
			h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": string(f.Capabilities)}
		}
		entries = append(entries, entry{h, open})
	}
	return write(ctx, entries, opts)
}

func linuxMode(f File) int64 {
	mode := int64(f.Mode.Perm())
	switch {
	case mode == 0 && f.isDir():
		mode = 0o755
	case mode == 0:
		mode = 0o644
	}
	if f.Mode&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}

package layer

import (
	"archive/tar"
	"context"
	"encoding/base64"
	"io/fs"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/images/internal/winsec"
)

// Records in which a Windows layer keeps what tar has no field for (hcsshim,
// pkg/ociwclayer and go-winio, backuptar).
const (
	recordAttributes = "MSWINDOWS.fileattr"
	recordSecurity   = "MSWINDOWS.rawsd"
	recordCreated    = "LIBARCHIVE.creationtime"
)

// Windows makes a layer of a Windows image: the files lie below Files, and
// changes of the registry would lie below Hives. Administrators and Windows
// itself may do everything, other users read and run. What can't go into it is a
// *fault.Problem of class fault.Input.
func Windows(ctx context.Context, files []File, opts Options) (v1.Layer, error) {
	hives := entry{header: windowsHeader(File{Name: "Hives", Mode: fs.ModeDir}, 0, opts.Created)}
	return windows(ctx, files, opts, hives)
}

// WindowsBase makes the lowest layer of a Windows image. It has no Hives:
// Windows makes that folder itself of the hives in Windows/System32/config when
// it imports the layer.
func WindowsBase(ctx context.Context, files []File, opts Options) (v1.Layer, error) {
	return windows(ctx, files, opts)
}

func windows(ctx context.Context, files []File, opts Options, more ...entry) (v1.Layer, error) {
	files, err := arrange(files, strings.ToLower, windowsName)
	if err != nil {
		return nil, err
	}
	entries := append([]entry{{header: windowsHeader(File{Name: "Files", Mode: fs.ModeDir}, 0, opts.Created)}}, more...)
	for _, f := range files {
		open, size, err := f.content()
		if err != nil {
			return nil, err
		}
		f.Name = "Files/" + f.Name
		entries = append(entries, entry{windowsHeader(f, size, opts.Created), open})
	}
	return write(ctx, entries, opts)
}

func windowsHeader(f File, size int64, created time.Time) tar.Header {
	const typeDir, typeFile = 1 << 14, 1 << 15 // of a Unix mode, as the tools that Windows layers are made with write it
	const attributeDirectory, attributeArchive = "16", "32"
	h := tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: size, Mode: typeFile | 0o555, ModTime: created.UTC().Truncate(time.Second), Format: tar.FormatPAX,
		PAXRecords: map[string]string{
			recordAttributes: attributeArchive,
			recordSecurity:   base64.StdEncoding.EncodeToString(fileSecurity().Bytes()),
			recordCreated:    strconv.FormatInt(created.Unix(), 10),
		}}
	if f.isDir() {
		h.Typeflag, h.Mode = tar.TypeDir, typeDir|0o555
		h.PAXRecords[recordAttributes] = attributeDirectory
		h.PAXRecords[recordSecurity] = base64.StdEncoding.EncodeToString(folderSecurity().Bytes())
	}
	return h
}

// fileSecurity is what a file has that Windows made below C:\.
func fileSecurity() winsec.Descriptor {
	return winsec.Descriptor{Owner: winsec.Administrators(), Group: winsec.System(), Allow: []winsec.ACE{
		{Rights: winsec.FileAll, Who: winsec.Administrators()},
		{Rights: winsec.FileAll, Who: winsec.System()},
		{Rights: winsec.ReadExecute, Who: winsec.Users()},
	}}
}

// folderSecurity is fileSecurity for a folder, and for what is made in it.
func folderSecurity() winsec.Descriptor {
	const all = winsec.ObjectInherit | winsec.ContainerInherit
	return winsec.Descriptor{Owner: winsec.Administrators(), Group: winsec.System(), Allow: []winsec.ACE{
		{Flags: all, Rights: winsec.FileAll, Who: winsec.Administrators()},
		{Flags: all, Rights: winsec.FileAll, Who: winsec.System()},
		{Flags: all | winsec.InheritOnly, Rights: winsec.GenericAll, Who: winsec.CreatorOwner()},
		{Flags: all, Rights: winsec.ReadExecute, Who: winsec.Users()},
	}}
}

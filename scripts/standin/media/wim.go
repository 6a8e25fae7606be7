package media

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// writeImages makes sources/install.wim with the images of the release's media.
// Each holds one small file: the stand-in's system comes from its own archive,
// the images are there to be chosen and checked.
func (in *inputs) writeImages(ctx context.Context, work, tree string) error {
	content := filepath.Join(work, "image", "Windows", "System32")
	if err := os.MkdirAll(content, 0o755); err != nil {
		return err
	}
	note := filepath.Join(content, "stand-in.txt")
	if err := os.WriteFile(note, []byte("A stand-in of wbox, not Windows.\r\n"), 0o644); err != nil {
		return err
	}
	for _, path := range []string{note, content, filepath.Dir(content), filepath.Join(work, "image")} {
		if err := os.Chtimes(path, epoch, epoch); err != nil {
			return err
		}
	}
	wim := filepath.Join(tree, "sources", "install.wim")
	for i, img := range images() {
		verb := "append"
		if i == 0 {
			verb = "capture"
		}
		argv := []string{"wimlib-imagex", verb, filepath.Join(work, "image"), wim,
			"Windows Server " + in.release.name + " " + img.name, "Windows Server " + in.release.name + " " + img.name}
		if i == 0 {
			argv = append(argv, "--compress=none")
		}
		for _, property := range in.properties(img) {
			argv = append(argv, "--image-property", property)
		}
		if _, err := run(ctx, "", argv...); err != nil {
			return err
		}
	}
	return fixWIM(wim)
}

// properties are what an image's XML says about it, as in Microsoft's media.
func (in *inputs) properties(img image) []string {
	return []string{
		"WINDOWS/ARCH=9",
		"WINDOWS/PRODUCTNAME=Microsoft\u00ae Windows\u00ae Operating System",
		"WINDOWS/EDITIONID=" + img.edition,
		"WINDOWS/INSTALLATIONTYPE=" + img.installation,
		"WINDOWS/PRODUCTTYPE=ServerNT",
		"WINDOWS/LANGUAGES/LANGUAGE=en-US",
		"WINDOWS/LANGUAGES/DEFAULT=en-US",
		"WINDOWS/VERSION/MAJOR=10",
		"WINDOWS/VERSION/MINOR=0",
		fmt.Sprintf("WINDOWS/VERSION/BUILD=%d", in.release.build),
		fmt.Sprintf("WINDOWS/VERSION/SPBUILD=%d", in.release.minor),
		"WINDOWS/VERSION/SPLEVEL=0",
		"WINDOWS/SYSTEMROOT=WINDOWS",
		"DISPLAYNAME=Windows Server " + in.release.name + " " + img.display,
		"DISPLAYDESCRIPTION=A stand-in of wbox, not Windows",
		"FLAGS=" + img.edition,
		"CREATIONTIME/HIGHPART=0x01DC7A00", "CREATIONTIME/LOWPART=0x00000000",
		"LASTMODIFICATIONTIME/HIGHPART=0x01DC7A00", "LASTMODIFICATIONTIME/LOWPART=0x00000000",
	}
}

// fixWIM makes the file's identifier, which is drawn at random, the same every
// time: 16 bytes at offset 24 of the header, in no checksum.
func fixWIM(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	magic := make([]byte, 8)
	if _, err := file.ReadAt(magic, 0); err != nil || string(magic) != "MSWIM\x00\x00\x00" {
		return errors.Join(errors.New("no WIM came out"), file.Close())
	}
	if _, err := file.WriteAt([]byte("wbox-stand-in-01"), 24); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

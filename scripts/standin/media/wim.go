package media

import (
	"context"
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
	// Appending leaves the older lists behind in the file.
	if _, err := run(ctx, "", "wimlib-imagex", "optimize", wim); err != nil {
		return err
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
	}
}

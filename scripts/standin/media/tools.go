package media

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Missing returns the programs that Build runs and this machine lacks, each with
// the Debian package that has it, and the boot stub where that is not there.
func Missing() []string {
	var missing []string
	for _, tool := range []struct{ name, pkg string }{
		{"go", "golang-go"}, {"apt-get", "apt"}, {"dpkg-deb", "dpkg"}, {"objcopy", "binutils"},
		{"mkfs.vfat", "dosfstools"}, {"mcopy", "mtools"}, {"mke2fs", "e2fsprogs"},
		{"wimlib-imagex", "wimtools"}, {"genisoimage", "genisoimage"},
	} {
		if _, err := exec.LookPath(tool.name); err != nil {
			missing = append(missing, tool.name+" (package "+tool.pkg+")")
		}
	}
	if _, err := os.Stat(efiStub); err != nil {
		missing = append(missing, efiStub+" (package systemd-boot-efi)")
	}
	return missing
}

// run runs a program with a fixed environment and returns its output. Its error
// holds the command line and the last lines that it printed.
func run(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch.Unix()),
		fmt.Sprintf("E2FSPROGS_FAKE_TIME=%d", epoch.Unix()), "MTOOLS_SKIP_CHECK=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("running %s: %w: %s", strings.Join(argv, " "), err, tail(errs.String()+out.String(), 400))
	}
	return out.Bytes(), nil
}

// tail returns the last n bytes of s, trimmed.
func tail(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) > n {
		s = "..." + s[len(s)-n:]
	}
	return s
}

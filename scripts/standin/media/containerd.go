package media

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
)

// containerdPrograms are what images need of Debian's package containerd. They
// are linked against the C library only.
var containerdPrograms = []string{"containerd", "ctr"}

var containerdVersion = regexp.MustCompile(`\bv?([0-9]+\.[0-9]+\.[0-9]+)`)

// findContainerd checks the programs and asks for their version.
func (in *inputs) findContainerd(ctx context.Context, _, _ string) error {
	if in.ctr == "" {
		return nil
	}
	if in.ps == "" {
		return errors.New("containerd is asked for by guest scripts, and without PowerShell none are run")
	}
	for _, name := range containerdPrograms {
		out, err := run(ctx, "", filepath.Join(in.ctr, name), "--version")
		if err != nil {
			return fmt.Errorf("looking for containerd: %w", err)
		}
		m := containerdVersion.FindStringSubmatch(string(out))
		if m == nil {
			return fmt.Errorf("%s names no version: %q", name, out)
		}
		in.ctrVersion = m[1]
	}
	return nil
}

// addContainerd adds the programs.
func (in *inputs) addContainerd(w *rootWriter) error {
	if in.ctr == "" {
		return nil
	}
	if err := w.add("opt/containerd/", 0o755, nil, 0); err != nil {
		return err
	}
	for _, name := range containerdPrograms {
		if err := w.addFile("opt/containerd/"+name, filepath.Join(in.ctr, name)); err != nil {
			return fmt.Errorf("adding containerd: %w", err)
		}
	}
	return nil
}

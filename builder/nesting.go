package builder

import (
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/fault"
)

// checkNesting refuses an output folder in the store, or a store in it: what
// tidies up the one would find the other.
func (b *Builder) checkNesting(dir string) error {
	out, err := realPath(dir)
	if err != nil {
		return unwritableOutput(dir, err)
	}
	store, err := realPath(b.store.Root())
	if err != nil {
		return err
	}
	if within(out, store) {
		return &fault.Problem{Class: fault.Usage, Field: "-o", Value: dir, Why: "lies in the store (" + store + ")", Fix: "name a folder outside of it"}
	}
	if within(store, out) && filepath.Dir(out) != out { // the root of a disk is refused for what else is in it
		return &fault.Problem{Class: fault.Usage, Field: "--store", Value: store, Why: "lies in the output folder (" + dir + ")",
			Fix: "name another with --store or WBOX_STORE, or another output folder with -o"}
	}
	return nil
}

// within says whether a path is dir or lies below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// realPath is an absolute path without links, as far as it exists.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for dir, rest := abs, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(resolved, rest), nil
		}
		if filepath.Dir(dir) == dir {
			return abs, nil
		}
	}
}

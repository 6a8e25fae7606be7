package layer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// File is one file, or one folder, of a layer. The folders above it need not be
// named.
type File struct {
	Name         string      // in the image, with slashes and without one in front: "usr/local/bin/kube-proxy"
	Path         string      // where the content lies; empty: it is Data
	Data         []byte      // the content, where there is no Path
	Mode         fs.FileMode // fs.ModeDir for a folder, permissions, fs.ModeSticky; default 0o644, of a folder 0o755. Windows has none
	Capabilities []byte      // Linux: the value of security.capability
}

func (f File) isDir() bool { return f.Mode.IsDir() }

// problem is what is said of a file that can't go into an image.
func problem(f File, why string, err error) error {
	value := f.Path
	if value == "" {
		value = f.Name
	}
	return &fault.Problem{Class: fault.Input, Field: "the image's file", Value: value, Why: why, Err: err, Fix: "give a regular file under a plain relative name"}
}

// content opens the file and says how long it is.
func (f File) content() (open func() (io.ReadCloser, error), size int64, err error) {
	if f.isDir() {
		return nil, 0, nil
	}
	if f.Path == "" {
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.Data)), nil }, int64(len(f.Data)), nil
	}
	st, err := os.Stat(f.Path) // looked at first: opening a pipe that nobody writes to never ends
	switch {
	case err != nil:
		return nil, 0, problem(f, "can't be read", err)
	case !st.Mode().IsRegular():
		return nil, 0, problem(f, "is no regular file", nil)
	}
	return func() (io.ReadCloser, error) { return os.Open(f.Path) }, st.Size(), nil
}

// arrange checks the names, adds the folders above each and sorts all, a folder
// before what is in it. What fold makes equal can't be there twice.
func arrange(files []File, fold func(string) string, check func(string) error) ([]File, error) {
	seen := map[string]File{}
	var out []File
	add := func(f File) error {
		old, there := seen[fold(f.Name)]
		switch {
		case there && old.Name == f.Name && old.isDir() && f.isDir():
			return nil
		case there:
			return problem(f, "is in the image twice, as "+old.Name, nil)
		}
		seen[fold(f.Name)] = f
		out = append(out, f)
		return nil
	}
	for _, f := range files { // as they are named, so that a folder keeps the mode it was given
		if !fs.ValidPath(f.Name) || f.Name == "." {
			return nil, problem(f, fmt.Sprintf("can't be named %q in an image", f.Name), nil)
		}
		if err := check(f.Name); err != nil {
			return nil, problem(f, fmt.Sprintf("can't be named %q in an image", f.Name), err)
		}
		if err := add(f); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		for dir := path.Dir(f.Name); dir != "."; dir = path.Dir(dir) {
			if err := add(File{Name: dir, Mode: fs.ModeDir}); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Name+"/", b.Name+"/") })
	return out, nil
}

// windowsName says why a name can't be one of Windows'.
func windowsName(name string) error {
	for _, part := range strings.Split(name, "/") {
		base, _, _ := strings.Cut(strings.ToUpper(part), ".")
		switch {
		case strings.ContainsAny(part, `\:*?"<>|`) || strings.ContainsFunc(part, func(r rune) bool { return r < ' ' }):
			return errors.New("Windows forbids one of its characters") //nolint:staticcheck // a name
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			return errors.New("Windows drops the dot or space at its end") //nolint:staticcheck // a name
		case slices.Contains([]string{"CON", "PRN", "AUX", "NUL"}, base),
			len(base) == 4 && (base[:3] == "COM" || base[:3] == "LPT") && base[3] >= '0' && base[3] <= '9':
			return errors.New("Windows takes it for a device") //nolint:staticcheck // a name
		}
	}
	return nil
}

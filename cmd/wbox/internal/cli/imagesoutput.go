package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/archive"
	"github.com/wbox-dev/wbox/images/build"
)

// imagesOutput is where built images go: a folder, or one file.
type imagesOutput struct {
	path string
	file bool
}

// archivesIn are the names in a folder of built images, by system.
func archivesIn() map[string]string {
	return map[string]string{"linux": "linux.tar", "windows": "windows.tar"}
}

// newImagesOutput checks that the place can be written to. A folder with files
// that are not of ours is a *fault.Problem of class fault.Usage.
func newImagesOutput(path string) (*imagesOutput, error) {
	if strings.EqualFold(filepath.Ext(path), ".tar") {
		return &imagesOutput{path, true}, archive.Check(path)
	}
	p := &fault.Problem{Class: fault.Usage, Field: "-o", Value: path, Fix: "name a new or empty folder, or a file that ends in .tar"}
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &imagesOutput{path, false}, nil
	case err != nil:
		p.Why, p.Err = "is no folder that can be read", err
		return nil, p
	}
	ours := []string{"linux.tar", "windows.tar", "kube-proxy-windows.yaml", "antrea-windows.yaml"}
	for _, e := range entries {
		if !slices.Contains(ours, e.Name()) && !strings.HasPrefix(e.Name(), ".wbox-tmp-") {
			p.Why = "holds " + e.Name() + ", which is not of ours"
			return nil, p
		}
	}
	return &imagesOutput{path, false}, archive.Check(filepath.Join(path, "linux.tar"))
}

// write saves the images and patches and returns the files' paths. What an
// earlier run left there is removed.
func (o *imagesOutput) write(ctx context.Context, made *build.Result, created time.Time) ([]string, error) {
	by := map[string][]archive.Entry{}
	for _, i := range made.Images {
		file := o.path
		if !o.file {
			file = filepath.Join(o.path, archivesIn()[i.OS])
		}
		by[file] = append(by[file], archive.Entry{Names: []string{i.Name}, Source: i.Source})
	}
	if !o.file {
		if err := os.MkdirAll(o.path, 0o755); err != nil {
			return nil, &fault.Problem{Class: fault.Host, Field: "-o", Value: o.path, Why: "can't be made", Err: err, Fix: "name another folder"}
		}
	}
	var files []string
	for _, file := range sortedKeys(by) {
		if _, err := archive.Save(ctx, file, by[file], archive.Options{Created: created}); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if o.file {
		return files, nil
	}
	for _, name := range sortedKeys(made.Patches) {
		file := filepath.Join(o.path, name)
		if err := archive.WriteFile(file, made.Patches[name]); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, o.removeOld(files)
}

// removeOld takes away what these images don't have.
func (o *imagesOutput) removeOld(files []string) error {
	for _, name := range []string{"linux.tar", "windows.tar", "kube-proxy-windows.yaml", "antrea-windows.yaml"} {
		file := filepath.Join(o.path, name)
		if slices.Contains(files, file) {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

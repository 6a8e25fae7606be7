package hostprocess

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/layer"
)

// Files maps names with slashes, such as "antrea-agent.exe" or
// "CalicoWindows/node/node-service.ps1", to where the files lie.
type Files map[string]string

// FilesIn returns the files of a folder and of the folders in it. field is the
// flag that a problem is about.
func FilesIn(field, dir string) (Files, error) {
	all := Files{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, p)
		all[filepath.ToSlash(name)] = p
		return err
	})
	if err != nil {
		return nil, &fault.Problem{Class: fault.Input, Field: field, Value: dir, Why: "can't be read", Err: err, Fix: "name a folder with the programs"}
	}
	return all, nil
}

// find returns where a file lies; case doesn't count, as on Windows.
func (f Files) find(name string) string {
	if p := f[name]; p != "" {
		return p
	}
	for _, have := range sortedNames(f) {
		if strings.EqualFold(have, name) {
			return f[have]
		}
	}
	return ""
}

// below returns the names of the files in a folder and of those in its folders.
func (f Files) below(dir string) []string {
	var out []string
	for _, name := range sortedNames(f) {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			out = append(out, rest)
		}
	}
	return out
}

// collection gathers what goes into an image, and what is missing of it.
type collection struct {
	from    Files
	files   []layer.File
	missing []string
}

// want adds a file that the image is nothing without.
func (c *collection) want(name, as string) {
	if !c.add(name, as) {
		c.missing = append(c.missing, name)
	}
}

// add adds a file that may be there.
func (c *collection) add(name, as string) bool {
	p := c.from.find(name)
	if p != "" {
		c.files = append(c.files, layer.File{Name: as, Path: p})
	}
	return p != ""
}

// tree adds all files of a folder.
func (c *collection) tree(dir, as string) {
	for _, name := range c.from.below(dir) {
		c.want(dir+"/"+name, path.Join(as, name))
	}
}

// check returns the problem of what is missing, nil where nothing is.
func (c *collection) check(field, title, hint string) error {
	if len(c.missing) == 0 {
		return nil
	}
	return &fault.Problem{Class: fault.Input, Field: field, Why: fmt.Sprintf("lacks %s for the image of %s", strings.Join(c.missing, ", "), title), Fix: hint}
}

// checkPrograms refuses what is called a Windows program and isn't one: found
// out on a node, that costs an hour.
func checkPrograms(field string, files []layer.File) error {
	for _, f := range files {
		if !strings.EqualFold(path.Ext(f.Name), ".exe") || f.Path == "" {
			continue
		}
		head := make([]byte, 2)
		file, err := os.Open(f.Path)
		if err == nil {
			_, err = file.Read(head)
			file.Close()
		}
		if err != nil || string(head) != "MZ" {
			return &fault.Problem{Class: fault.Input, Field: field, Value: f.Path, Why: "is no Windows program", Err: err, Fix: "give a .exe file that was built for windows/amd64"}
		}
	}
	return nil
}

func sortedNames(f Files) []string { return slices.Sorted(maps.Keys(f)) }

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, s) })
}

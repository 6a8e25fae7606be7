package component

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
)

// Source returns what gets the programs of a request, or nil where there is
// nothing to get (Bare). A path is looked at: it is a source tree, a folder of
// programs or an image; anything else is a *fault.Problem.
func (r Request) Source(opts Options) (Source, error) {
	p := projectOf(r.Project)
	switch {
	case r.Form == Bare:
		return nil, nil
	case r.Form == Module:
		return &moduleSource{project: p, request: r, opts: opts}, nil
	case r.Form == Path:
		return pathSource(p, r.Path, opts)
	}
	remote := r.Remote
	if remote == "" {
		remote = opts.gitURL(p)
	}
	return &gitSource{project: p, request: r, remote: remote, opts: opts}, nil
}

// pathSource returns the source of a path.
func pathSource(p *project, path string, opts Options) (Source, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, refuse(p.flag, path, "does not exist", "give a source tree, a folder with "+p.ready[0].name+".exe or the tar file of an image")
	case err != nil:
		return nil, &fault.Problem{Class: fault.Input, Field: p.flag, Value: path, Why: "can't be read", Err: err, Fix: "check its permissions"}
	case st.Mode().IsRegular():
		return &imageSource{project: p, path: path, opts: opts}, nil
	case !st.IsDir():
		return nil, refuse(p.flag, path, "is neither a folder nor a file", "give a source tree, a folder with "+p.ready[0].name+".exe or the tar file of an image")
	}
	switch module := moduleOf(path); {
	case module == "":
		return &dirSource{project: p, path: path}, nil
	case p.gitURL == "":
		return nil, refuse(p.flag, path, "is a source tree, and flanneld.exe can't be compiled here: it needs cgo and a C compiler for Windows",
			"take the release: flannel@./flannel-VERSION-windows-amd64.tar.gz")
	case !p.module.MatchString(module):
		return nil, refuse(p.flag, path, "is a source tree of "+module+", not of "+p.title, "give another folder")
	}
	return &checkoutSource{project: p, path: path, opts: opts}, nil
}

// moduleOf returns the module path of a source tree, or "".
func moduleOf(dir string) string {
	data, err := gosource.ReadSome(filepath.Join(dir, "go.mod"), 1<<20)
	if err != nil {
		return ""
	}
	return modfile.ModulePath(data)
}

// guessProject finds out which CNI a path is about, nil if it doesn't tell: by
// the module of a source tree, or by the programs that only one of them has.
func guessProject(path string) *project {
	var found *project
	module := moduleOf(path)
	for _, p := range []*project{antrea(), calico(), flannel()} {
		if module != "" {
			if p.module != nil && p.module.MatchString(module) || p.name == Flannel && module == "github.com/flannel-io/flannel" {
				return p
			}
			continue
		}
		for _, program := range p.ready {
			if _, err := os.Stat(filepath.Join(path, program.name+".exe")); err == nil && program.required {
				if found != nil {
					return nil
				}
				found = p
				break
			}
		}
	}
	return found
}

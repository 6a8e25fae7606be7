package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/build"
	"github.com/wbox-dev/wbox/images/hostprocess"
)

// plugin reads --cni, nil where there is none.
func (b *imagesBuildFlags) plugin(windows bool) (*component.Request, error) {
	if b.cni == "" || b.cni == component.None {
		if b.cniVersion != "" {
			return nil, &fault.Problem{Class: fault.Usage, Field: "--cni-version", Value: b.cniVersion, Why: "is for the images of --cni", Fix: "say --cni antrea@REF, or leave it out"}
		}
		return nil, nil
	}
	r, err := component.ParseCNI(b.cni)
	if err != nil {
		return nil, err
	}
	p := &fault.Problem{Class: fault.Usage, Field: "--cni", Value: b.cni}
	switch {
	case r.Project != component.Antrea && r.Project != component.Calico:
		p.Why, p.Fix = "has no images that are made here", "use antrea or calico"
	case r.Form == component.Bare:
		p.Why, p.Fix = "says no source of its programs", "write it as "+r.Project+"@REF or "+r.Project+"@./PATH"
	case !windows:
		p.Why, p.Fix = "has images for Windows only, which --platform does not ask for", "add windows/amd64 to --platform"
	case r.Project == component.Calico && r.Form == component.Git:
		p.Why, p.Fix = "has scripts in its images that are not compiled", "clone it, and name the source tree: calico@./PATH"
	default:
		return &r, nil
	}
	return nil, p
}

// pluginOfImages gets a plugin's programs, and from a folder or source tree
// what else its images hold.
func (a *app) pluginOfImages(ctx context.Context, b *imagesBuildFlags, req component.Request, r *build.Request) (ref component.Ref, err error) {
	store, err := a.storeDir()
	if err != nil {
		return ref, err
	}
	src, err := req.Source(component.Options{CacheDir: filepath.Join(store, "kube"), Offline: a.offline})
	if err != nil {
		return ref, err
	}
	if ref, err = src.Resolve(ctx, a.display); err != nil {
		return ref, err
	}
	plugin := &build.Plugin{Name: req.Project, Version: cmp.Or(b.cniVersion, ref.Version), Revision: ref.Commit, Files: hostprocess.Files{}}
	if plugin.Version == "" || plugin.Version == "unknown" {
		return ref, &fault.Problem{Class: fault.Usage, Field: "--cni-version", Why: "is missing: what " + b.cni + " holds doesn't say its version, and tags are not guessed", Fix: "name it, such as v2.7.0"}
	}
	if req.Form == component.Path {
		if plugin.Files, err = besideProgramsOf(req); err != nil {
			return ref, err
		}
	}
	dir, scratch := filepath.Join(r.Dir, req.Project), filepath.Join(r.Dir, req.Project+"-scratch")
	for _, d := range []string{dir, scratch} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return ref, fmt.Errorf("making a folder for the programs: %w", err)
		}
	}
	if _, err := src.Fetch(ctx, ref, dir, scratch, a.display); err != nil {
		return ref, err
	}
	programs, err := hostprocess.FilesIn("--cni", dir)
	if err != nil {
		return ref, err
	}
	maps.Copy(plugin.Files, programs) // verified, so they win over the folder's own
	r.Plugin = plugin
	return ref, nil
}

// besideProgramsOf finds the files of a path that images hold beside programs.
func besideProgramsOf(req component.Request) (hostprocess.Files, error) {
	st, err := os.Stat(req.Path)
	if err != nil || !st.IsDir() { // an image's file, or it is gone: Fetch says so
		return hostprocess.Files{}, nil
	}
	if _, err := os.Stat(filepath.Join(req.Path, "go.mod")); err != nil {
		return hostprocess.FilesIn("--cni", req.Path)
	}
	if req.Project == component.Antrea {
		script := filepath.Join(req.Path, "hack", "windows", "Install-OVS.ps1")
		if _, err := os.Stat(script); err != nil { // no image needs it
			return hostprocess.Files{}, nil
		}
		return hostprocess.Files{"Install-OVS.ps1": script}, nil
	}
	files, err := hostprocess.FilesIn("--cni", filepath.Join(req.Path, "node", "windows-packaging", "CalicoWindows"))
	if err != nil {
		return nil, err
	}
	out := hostprocess.Files{}
	for name, path := range files {
		out["CalicoWindows/"+name] = path
	}
	return out, nil
}

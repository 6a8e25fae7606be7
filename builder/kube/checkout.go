package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/mod/modfile"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// checkoutSource compiles a source tree of Kubernetes that lies in a folder,
// with whatever the user changed in it.
type checkoutSource struct {
	path string
	opts Options
}

// isSourceTree says whether a folder is a source tree of Kubernetes.
func isSourceTree(dir string) bool {
	data, err := gosource.ReadSome(filepath.Join(dir, "go.mod"), 1<<20)
	return err == nil && modfile.ModulePath(data) == mainModule
}

// Resolve pins the files of the folder by their content.
func (c *checkoutSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	if c.opts.Base != "" {
		return Ref{}, versionProblem("--k8s-base", c.opts.Base, "is of no use with a source tree, which lacks nothing", "leave it out")
	}
	if _, err := os.Stat(filepath.Join(c.path, "kubelet.exe")); err == nil {
		sink.Emit(report.Event{Kind: report.Note, Message: "compiling the source tree " + c.path + "; the kubelet.exe in it is not used (to use it, give a folder with nothing but programs)"})
	}
	facts, err := gosource.CheckoutFacts(ctx, c.opts.settings(), c.path)
	if err != nil {
		return Ref{}, err
	}
	if facts.Shallow && c.opts.Version == "" {
		return Ref{}, versionProblem(field, c.path, "is a shallow clone without tags, so that its version is not known",
			"run git -C "+c.path+" fetch --unshallow --tags, or say --k8s-version")
	}
	if facts.Archive {
		readArchive(gosource.InDir(c.path), &facts)
	}
	return pinTree(ctx, c.path, facts, gosource.InDir(c.path), c.opts, sink)
}

// Fetch compiles the tree where it lies. That it was not changed meanwhile is
// checked afterwards.
func (c *checkoutSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	return gosource.InPlace(ctx, c.opts.settings(), c.path, ref, dir, scratch, func(root, dir string) (Bits, error) {
		last := c.opts.settings().LastFolder(root, fmt.Sprint(c.opts.Debug, c.opts.ControlPlane))
		src := sourceTree{root: root, from: "compiled from " + c.path, last: last}
		return compileTree(ctx, ref, src, dir, scratch, c.opts, sink)
	})
}

// readArchive looks at a tree that was unpacked from an archive of git's: it
// says its commit, and its version if it was made of a tag.
func readArchive(read gosource.FileReader, f *gosource.Facts) {
	script, err := read("hack/lib/version.sh")
	if err != nil {
		return
	}
	if m := regexp.MustCompile(`KUBE_GIT_COMMIT='([0-9a-f]{40,64})'`).FindSubmatch(script); m != nil {
		f.Commit = string(m[1])
	}
	if m := regexp.MustCompile(`\[\[ '[^']*tag: (v[^' ,]+)`).FindSubmatch(script); m != nil {
		f.Described = string(m[1])
	}
}

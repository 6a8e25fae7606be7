package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/wbox-dev/wbox/builder/fault"
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
	data, err := readSome(filepath.Join(dir, "go.mod"), 1<<20)
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
	facts, err := c.facts(ctx)
	if err != nil {
		return Ref{}, err
	}
	return pinTree(ctx, c.path, facts, inDir(c.path), c.opts, sink)
}

// Fetch compiles the tree where it lies. That it was not changed meanwhile is
// checked afterwards.
func (c *checkoutSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	changed := func() error {
		facts, err := c.facts(ctx)
		if err != nil {
			return err
		}
		if facts.tree != ref.Inputs[gitTreeInput] || facts.ignored != ref.Inputs["ignored-files"] {
			return versionProblem(field, c.path, "has changed since it was looked at", "run it again when nothing writes to it")
		}
		return nil
	}
	if err := changed(); err != nil {
		return Bits{}, err
	}
	root, err := filepath.Abs(c.path)
	if err != nil {
		return Bits{}, fmt.Errorf("finding the source tree: %w", err)
	}
	fresh := filepath.Join(scratch, "programs") // empty as dir is, but thrown away if the tree changed
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return Bits{}, fmt.Errorf("making a folder for the programs: %w", err)
	}
	bits, err := compileTree(ctx, ref, root, "compiled from "+c.path, fresh, scratch, c.opts, sink)
	if err != nil {
		return Bits{}, err
	}
	if err := changed(); err != nil {
		return Bits{}, err
	}
	for _, b := range bits.Binaries {
		if err := moveFile(filepath.Join(fresh, b.File), filepath.Join(dir, b.File)); err != nil {
			return Bits{}, fmt.Errorf("keeping %s: %w", b.File, err)
		}
	}
	return bits, nil
}

// facts looks at the tree: through git where it is a repository.
func (c *checkoutSource) facts(ctx context.Context) (commitFacts, error) {
	if _, err := os.Stat(filepath.Join(c.path, ".git")); err != nil {
		return c.archiveFacts(ctx)
	}
	git, err := newGit(ctx, c.opts)
	if err != nil {
		return commitFacts{}, err
	}
	git = git.in(c.path)
	if conflict, err := git.run(ctx, "ls-files", "-u", "-z", "--full-name"); err != nil {
		return commitFacts{}, gitProblem(ctx, err, c.path, "looking at the checkout")
	} else if len(conflict) > 0 {
		_, name, _ := strings.Cut(strings.Split(string(conflict), "\x00")[0], "\t")
		return commitFacts{}, versionProblem(field, c.path, "has a merge conflict in "+name, "resolve it (git status lists all of them)")
	}
	f, err := readCommit(ctx, git, "HEAD")
	if err != nil {
		return f, err
	}
	if f.described == "" && c.opts.Version == "" {
		if shallow, err := git.text(ctx, "rev-parse", "--is-shallow-repository"); err == nil && shallow == "true" {
			return f, versionProblem(field, c.path, "is a shallow clone without tags, so that its version is not known",
				"run git -C "+c.path+" fetch --unshallow --tags, or say --k8s-version")
		}
	}
	status, err := git.run(ctx, "status", "--porcelain")
	if err != nil {
		return f, gitProblem(ctx, err, c.path, "looking for changes")
	}
	if f.dirty = len(status) > 0; f.dirty {
		f.source = "checkout"
		if f.tree, err = contentTree(ctx, git, c.path); err != nil {
			return f, err
		}
	}
	f.ignored, err = ignoredFiles(ctx, git, c.path)
	return f, err
}

// contentTree returns the id of the tree that a commit of everything in the
// checkout would have. It works on a copy of the index, and what it has to hash
// goes into a folder that is thrown away: the user's repository stays as it is.
func contentTree(ctx context.Context, git *gitTool, path string) (string, error) {
	dir, err := os.MkdirTemp("", "wbox-tree-")
	if err != nil {
		return "", fmt.Errorf("making a folder for git: %w", err)
	}
	defer os.RemoveAll(dir)
	out, err := git.run(ctx, "rev-parse", "--path-format=absolute", "--git-path", "index", "--git-path", "objects")
	if err != nil {
		return "", gitProblem(ctx, err, path, "looking at the checkout")
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		return "", fmt.Errorf("looking at the checkout: git rev-parse printed %q", out)
	}
	index := filepath.Join(dir, "index")
	switch st, err := os.Stat(lines[0]); {
	case errors.Is(err, fs.ErrNotExist): // nothing was ever added
	case err != nil:
		return "", fmt.Errorf("reading the index: %w", err)
	default:
		if err := copyFile(lines[0], index); err != nil {
			return "", fmt.Errorf("copying the index: %w", err)
		}
		// A file that was changed right after the index was written is told by
		// the index's time.
		if err := os.Chtimes(index, st.ModTime(), st.ModTime()); err != nil {
			return "", fmt.Errorf("copying the index: %w", err)
		}
	}
	objects := filepath.Join(dir, "objects")
	if err := os.Mkdir(objects, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for git: %w", err)
	}
	git = git.in(path, "GIT_INDEX_FILE="+index, "GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+lines[1])
	if _, err := git.run(ctx, "add", "--all", "."); err != nil {
		return "", gitProblem(ctx, err, path, "hashing the changed files")
	}
	tree, err := git.text(ctx, "write-tree")
	if err != nil {
		return "", gitProblem(ctx, err, path, "hashing the checkout")
	}
	return "git:" + tree, nil
}

// ignoredFiles returns a digest of the files that git ignores and the go command
// doesn't, or "" where there are none.
func ignoredFiles(ctx context.Context, git *gitTool, path string) (string, error) {
	out, err := git.run(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", "*.go", "*.s", "*.syso", "go.mod", "go.sum", "go.work", "vendor/modules.txt")
	if err != nil {
		return "", gitProblem(ctx, err, path, "looking for ignored files")
	}
	var names []string
	for _, name := range strings.Split(string(out), "\x00") {
		if name != "" && !regexp.MustCompile(`(^|/)[._]`).MatchString(name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return "", nil
	}
	return hashFiles(ctx, path, names)
}

// hashFiles returns a digest of the names and contents of files.
func hashFiles(ctx context.Context, root string, names []string) (string, error) {
	slices.Sort(names)
	all := sha256.New()
	for _, name := range names {
		if ctx.Err() != nil {
			return "", fmt.Errorf("hashing the source: %w", ctx.Err())
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		one := sha256.New()
		if st, err := os.Lstat(path); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			if err != nil {
				return "", fmt.Errorf("hashing the source: %w", err)
			}
			fmt.Fprintf(one, "link %q", to)
		} else {
			f, err := os.Open(path)
			if err != nil {
				return "", fmt.Errorf("hashing the source: %w", err)
			}
			_, err = io.Copy(one, f)
			f.Close()
			if err != nil {
				return "", fmt.Errorf("hashing %s: %w", name, err)
			}
		}
		fmt.Fprintf(all, "%q %x\n", name, one.Sum(nil))
	}
	return "sha256:" + hex.EncodeToString(all.Sum(nil)), nil
}

// archiveFacts looks at a tree without a repository, unpacked from an archive of
// git's: it then says its commit, and its version if it was made of a tag.
func (c *checkoutSource) archiveFacts(ctx context.Context) (commitFacts, error) {
	f := commitFacts{source: "checkout", archive: true}
	var names []string
	err := filepath.WalkDir(c.path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != c.path && hasAnyPrefix(d.Name(), ".", "_"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		name, err := filepath.Rel(c.path, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err == nil {
		f.tree, err = hashFiles(ctx, c.path, names)
	}
	if err != nil {
		return f, &fault.Problem{Class: fault.Input, Field: field, Value: c.path, Why: "can't be read", Err: err, Fix: "check the permissions of its files"}
	}
	script, err := inDir(c.path)("hack/lib/version.sh")
	if err == nil {
		if m := regexp.MustCompile(`KUBE_GIT_COMMIT='([0-9a-f]{40,64})'`).FindSubmatch(script); m != nil {
			f.commit = string(m[1])
		}
		if m := regexp.MustCompile(`\[\[ '[^']*tag: (v[^' ,]+)`).FindSubmatch(script); m != nil {
			f.described = string(m[1])
		}
	}
	return f, nil
}

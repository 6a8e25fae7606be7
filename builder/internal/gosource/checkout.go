package gosource

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

	"github.com/wbox-dev/wbox/builder/fault"
)

// CheckoutFacts looks at a source tree of the user's with whatever was changed
// in it: through git where it is a repository, by its files otherwise.
func CheckoutFacts(ctx context.Context, set Settings, path string) (Facts, error) {
	if !isRepository(path) {
		return archiveFacts(ctx, set, path)
	}
	git, err := NewGit(ctx, set)
	if err != nil {
		return Facts{}, err
	}
	git = git.In(path)
	if conflict, err := git.Run(ctx, "ls-files", "-u", "-z", "--full-name"); err != nil {
		return Facts{}, git.Problem(ctx, err, path, "looking at the checkout")
	} else if len(conflict) > 0 {
		_, name, _ := strings.Cut(strings.Split(string(conflict), "\x00")[0], "\t")
		return Facts{}, set.Problem(path, "has a merge conflict in "+name, "resolve it (git status lists all of them)")
	}
	f, err := git.Facts(ctx, "HEAD")
	if err != nil {
		return f, err
	}
	if f.Described == "" {
		shallow, err := git.Text(ctx, "rev-parse", "--is-shallow-repository")
		f.Shallow = err == nil && shallow == "true"
	}
	// Together these say what git status says, and it is one look at all files
	// instead of two: what is staged, and what differs from the commit.
	staged, err := git.Run(ctx, "diff-index", "--cached", "--name-only", "HEAD")
	if err != nil {
		return f, git.Problem(ctx, err, path, "looking for changes")
	}
	tree := f.Tree
	f.Tree, f.Ignored, err = content(ctx, git, path)
	if f.Dirty = err == nil && (len(staged) > 0 || f.Tree != tree); f.Dirty {
		f.Source = "checkout"
	}
	return f, err
}

func isRepository(path string) bool {
	_, err := os.Stat(filepath.Join(path, ".git"))
	return err == nil
}

// content returns the digests of all that a checkout holds: the files as a
// commit of them would be, and those that git ignores and the go command doesn't.
func content(ctx context.Context, git *Git, path string) (tree, ignored string, err error) {
	if tree, err = contentTree(ctx, git, path); err != nil {
		return "", "", err
	}
	ignored, err = ignoredFiles(ctx, git, path)
	return tree, ignored, err
}

// unchanged returns the problem of a tree that is no longer what was resolved.
func unchanged(ctx context.Context, set Settings, path string, ref Ref) error {
	var f Facts
	var err error
	if isRepository(path) {
		var git *Git
		if git, err = NewGit(ctx, set); err == nil {
			f.Tree, f.Ignored, err = content(ctx, git.In(path), path)
		}
	} else {
		f, err = archiveFacts(ctx, set, path)
	}
	if err != nil {
		return err
	}
	if f.Tree != ref.Inputs[TreeInput] || f.Ignored != ref.Inputs[ignoredInput] {
		return set.Problem(path, "has changed since it was looked at", "run it again when nothing writes to it")
	}
	return nil
}

// InPlace compiles a checkout where it lies. That it is still what was resolved
// is checked afterwards, which sees what was changed meanwhile too: only then are
// the programs put into dir. compile gets
// the tree's absolute path and an empty folder for the programs.
func InPlace(ctx context.Context, set Settings, path string, ref Ref, dir, scratch string, compile func(root, dir string) (Bits, error)) (Bits, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return Bits{}, fmt.Errorf("finding the source tree: %w", err)
	}
	if set.Anew {
		other := filepath.Join(scratch, "src")
		if err := copyTree(ctx, root, other); err != nil {
			return Bits{}, fmt.Errorf("copying the source tree: %w", err)
		}
		root = other
	}
	fresh := filepath.Join(scratch, "programs") // empty as dir is, but thrown away if the tree changed
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return Bits{}, fmt.Errorf("making a folder for the programs: %w", err)
	}
	bits, err := compile(root, fresh)
	if err != nil {
		return Bits{}, err
	}
	if err := unchanged(ctx, set, path, ref); err != nil {
		return Bits{}, err
	}
	for _, b := range bits.Binaries {
		if err := MoveFile(filepath.Join(fresh, b.File), filepath.Join(dir, b.File)); err != nil {
			return Bits{}, fmt.Errorf("keeping %s: %w", b.File, err)
		}
	}
	return bits, nil
}

// contentTree returns the id of the tree that a commit of everything in the
// checkout would have. It works on a copy of the index, and what it has to hash
// goes into a folder that is thrown away: the user's repository stays as it is.
func contentTree(ctx context.Context, git *Git, path string) (string, error) {
	dir, err := os.MkdirTemp("", "wbox-tree-")
	if err != nil {
		return "", fmt.Errorf("making a folder for git: %w", err)
	}
	defer os.RemoveAll(dir)
	out, err := git.Run(ctx, "rev-parse", "--path-format=absolute", "--git-path", "index", "--git-path", "objects")
	if err != nil {
		return "", git.Problem(ctx, err, path, "looking at the checkout")
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
		if err := CopyFile(lines[0], index); err != nil {
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
	git = git.In(path, "GIT_INDEX_FILE="+index, "GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+lines[1])
	if _, err := git.Run(ctx, "add", "--all", "."); err != nil {
		return "", git.Problem(ctx, err, path, "hashing the changed files")
	}
	tree, err := git.Text(ctx, "write-tree")
	if err != nil {
		return "", git.Problem(ctx, err, path, "hashing the checkout")
	}
	return "git:" + tree, nil
}

// ignoredFiles returns a digest of the files that git ignores and the go command
// doesn't, or "" where there are none.
func ignoredFiles(ctx context.Context, git *Git, path string) (string, error) {
	out, err := git.Run(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", "*.go", "*.s", "*.syso", "go.mod", "go.sum", "go.work", "vendor/modules.txt")
	if err != nil {
		return "", git.Problem(ctx, err, path, "looking for ignored files")
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

// archiveFacts looks at a tree without a repository, unpacked from an archive
// perhaps.
func archiveFacts(ctx context.Context, set Settings, root string) (Facts, error) {
	f := Facts{Source: "checkout", Archive: true}
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && hasAnyPrefix(d.Name(), ".", "_"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		name, err := filepath.Rel(root, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err == nil {
		f.Tree, err = hashFiles(ctx, root, names)
	}
	if err != nil {
		return f, &fault.Problem{Class: fault.Input, Field: set.Field, Value: root, Why: "can't be read", Err: err, Fix: "check the permissions of its files"}
	}
	return f, nil
}

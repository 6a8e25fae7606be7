package gosource

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Inputs of a Ref that stand for a source tree.
const (
	TreeInput    = "git-tree"      // its files
	ignoredInput = "ignored-files" // those that git ignores and the go command doesn't
)

// Facts are what a repository says of a commit, or of a checkout.
type Facts struct {
	Source    string // of the Ref: "git" or "checkout"
	Commit    string // full hex; empty where unknown
	Tree      string // digest of the files
	Time      string // of the commit, seconds since 1970
	Described string // output of git describe; empty: it found no tag
	Dirty     bool   // a file differs from the commit
	Archive   bool   // it is no repository
	Shallow   bool   // no tag was found in a clone that lacks history
	Ignored   string // digest of the files that git ignores and go doesn't, where there are such
}

// Facts reads what a repository says of a commit.
func (g *Git) Facts(ctx context.Context, commit string) (Facts, error) {
	out, err := g.Text(ctx, "show", "-s", "--no-show-signature", "--format=%H %T %ct", commit)
	if err != nil {
		return Facts{}, g.Problem(ctx, err, commit, "reading the commit")
	}
	f := Facts{Source: "git"}
	if _, err := fmt.Sscan(out, &f.Commit, &f.Tree, &f.Time); err != nil {
		return f, fmt.Errorf("reading what git show prints: %w", err)
	}
	f.Tree = "git:" + f.Tree
	if g.describe == nil {
		return f, nil
	}
	f.Described, err = g.Text(ctx, append(append([]string{"describe"}, g.describe...), commit+"^{commit}")...)
	if err != nil && ctx.Err() != nil {
		return f, fmt.Errorf("describing the commit: %w", ctx.Err())
	}
	return f, nil
}

// Facts reads what the mirror says of a commit.
func (m *Mirror) Facts(ctx context.Context, commit string) (Facts, error) {
	dir, err := os.MkdirTemp("", "wbox-view-")
	if err != nil {
		return Facts{}, fmt.Errorf("making a view of the git mirror: %w", err)
	}
	defer os.RemoveAll(dir)
	view, err := m.View(ctx, dir)
	if err != nil {
		return Facts{}, err
	}
	return view.Facts(ctx, commit)
}

// Ref returns the ref of the files that were looked at, without version,
// toolchain and flags.
func (f Facts) Ref() Ref {
	ref := Ref{Source: f.Source, Commit: f.Commit, TreeState: "clean", Inputs: map[string]string{TreeInput: f.Tree}}
	switch {
	case f.Dirty:
		ref.TreeState = "dirty"
	case f.Archive:
		ref.TreeState = "archive"
	}
	if f.Ignored != "" {
		ref.Inputs[ignoredInput] = f.Ignored
	}
	return ref
}

// BuildDate is the date to stamp, RFC 3339 in UTC: SOURCE_DATE_EPOCH where it is
// set, else that of the commit, in seconds since 1970; empty where neither is.
func (s Settings) BuildDate(commitTime string) (string, error) {
	text := commitTime
	if v := s.Getenv("SOURCE_DATE_EPOCH"); v != "" {
		text = v
	}
	if text == "" {
		return "", nil
	}
	sec, err := strconv.ParseInt(text, 10, 64)
	if err != nil || sec < 0 || sec > 253402300799 {
		return "", &fault.Problem{Class: fault.Input, Field: "SOURCE_DATE_EPOCH", Value: text, Why: "is no number of seconds since 1970", Fix: "unset it, or give such a number"}
	}
	return time.Unix(sec, 0).UTC().Format("2006-01-02T15:04:05Z"), nil
}

// Problem is a refused value of the flag that the settings are for.
func (s Settings) Problem(value, why, fix string) *fault.Problem {
	return &fault.Problem{Class: fault.Input, Field: s.Field, Value: value, Why: why, Fix: fix}
}

// TreeEnv are the settings of the go command inside of a source tree: its own
// workspace and vendor folder count, and no file of it is written.
func TreeEnv(root string, g *GoTool) []string {
	work := filepath.Join(root, "go.work")
	if _, err := os.Stat(work); err != nil {
		work = "off"
	}
	// Without it the go command asks git for the tree's version, and notes the
	// answer in the module cache as if the module had been downloaded: a fork's
	// tag would then be taken for the release of that name.
	goflags := "-buildvcs=false"
	if strings.Contains(" "+g.User["GOFLAGS"]+" ", " -modcacherw ") {
		goflags += " -modcacherw"
	}
	return []string{"GOWORK=" + work, "GOFLAGS=" + goflags}
}

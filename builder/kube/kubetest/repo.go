package kubetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/internal/gosource/gittest"
)

// Commits of the repository that Repo makes, by what they are.
type Commits map[string]string

// Repo makes a git repository of Kubernetes' shape in dir, with a work tree on
// master, and returns its commits:
//
//	"v1.37.0"        a release, annotated tag
//	"v1.37.2"        a release on release-1.37, annotated tag
//	"release-1.37"   one commit behind v1.37.2
//	"v1.38.0-alpha.0" a pre-release on master, annotated tag
//	"master"         two commits behind it
//	"pull/4242"      on master, in no branch; its merge is pull/4242/merge
//	"broken"         a branch whose kubelet does not compile for Windows
//
// goVersion goes into .go-version. The repository may be fetched from in every
// way that real servers offer.
func Repo(ctx context.Context, dir, goVersion string) (Commits, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the fixture's repository: %w", err)
	}
	r := &repo{ctx: ctx, dir: dir, release: Release{GoVersion: goVersion}, commits: Commits{}}
	r.git("init", "--quiet", "--initial-branch=master", ".")
	for _, c := range []string{"uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"} {
		r.git("config", c, "true")
	}
	r.git("config", "gc.auto", "0")
	r.commit("v1.37.0")
	r.git("tag", "-a", "-m", "v1.37.0", "v1.37.0")
	r.git("checkout", "--quiet", "-b", "release-1.37")
	r.commit("v1.37.2")
	r.git("tag", "-a", "-m", "v1.37.2", "v1.37.2")
	r.commit("release-1.37")
	r.git("checkout", "--quiet", "master")
	r.commit("v1.38.0-alpha.0")
	r.git("tag", "-a", "-m", "v1.38.0-alpha.0", "v1.38.0-alpha.0")
	r.commit("first")
	r.commit("master")
	r.git("checkout", "--quiet", "-b", "topic")
	r.commit("pull/4242")
	r.git("update-ref", "refs/pull/4242/head", "HEAD")
	r.commit("pull/4242/merge")
	r.git("update-ref", "refs/pull/4242/merge", "HEAD")
	r.git("checkout", "--quiet", "-b", "broken", "master")
	r.release.Broken = true
	r.commit("broken")
	r.git("checkout", "--quiet", "master")
	r.git("branch", "--quiet", "-D", "topic")
	return r.commits, r.err
}

// repo is a repository being made; the first error stays.
type repo struct {
	ctx     context.Context
	dir     string
	release Release
	commits Commits
	err     error
}

// git runs git and returns what it prints.
func (r *repo) git(args ...string) string {
	if r.err != nil {
		return ""
	}
	var out string
	out, r.err = gittest.Run(r.ctx, r.dir, len(r.commits), args...)
	return out
}

// commit writes the tree, with one file that is new, and commits it.
func (r *repo) commit(name string) {
	if r.err == nil {
		r.err = writeTree(r.dir, r.release)
	}
	if r.err == nil {
		r.err = os.WriteFile(filepath.Join(r.dir, "CHANGES"), []byte(name+"\n"), 0o644)
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", name)
	r.commits[name] = r.git("rev-parse", "HEAD")
}

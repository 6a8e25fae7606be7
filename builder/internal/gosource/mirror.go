package gosource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// Mirror is one bare repository of ours that all remotes share: the history
// whole, the files only as far as they were needed. Each remote has its refs
// under a name of its own, so that two forks with other tags of one name don't
// meet. It is safe for concurrent processes: refs change under a lock only, and
// what a checkout fetches on demand changes none.
type Mirror struct {
	dir    string
	Remote string // as git gets it
	name   string // of the remote in refs and settings
	git    *Git
	set    Settings
	sink   report.Sink

	pause time.Duration // before the second try
}

// fetchTries is how often a fetch that the network broke is begun anew; git
// can't go on with one.
const fetchTries = 3

// OpenMirror makes the mirror in set.CacheDir, if need be, for work with one remote.
func OpenMirror(ctx context.Context, set Settings, remote string, sink report.Sink) (*Mirror, error) {
	if set.CacheDir == "" {
		return nil, errors.New("there is no folder to keep a git mirror in")
	}
	dir, err := filepath.Abs(filepath.Join(set.CacheDir, "git", "mirror.git"))
	if err != nil {
		return nil, fmt.Errorf("finding the git mirror: %w", err)
	}
	git, err := NewGit(ctx, set)
	if err != nil {
		return nil, err
	}
	if remote, err = absRemote(remote); err != nil {
		return nil, fmt.Errorf("finding the git repository: %w", err)
	}
	sum := sha256.Sum256([]byte(remote))
	m := &Mirror{dir: dir, Remote: remote, name: "r" + hex.EncodeToString(sum[:6]), set: set, sink: sink, pause: cmp.Or(set.RetryPause, time.Second)}
	// The remote lives in the environment: its URL, which may hold a password,
	// is written nowhere.
	for _, c := range [][2]string{{"url", remote}, {"promisor", "true"}, {"partialclonefilter", "blob:none"}} {
		git = git.With("remote."+m.name+"."+c[0], c[1])
	}
	m.git = git.With("core.autocrlf", "false").With("fetch.writeCommitGraph", "true").In("", "GIT_DIR="+dir)
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return m, nil
	}
	if _, err := git.Run(ctx, "init", "--quiet", "--bare", "--template=", dir); err != nil {
		return nil, m.git.Problem(ctx, err, dir, "making the git mirror")
	}
	return m, nil
}

// lock waits for the right to change refs. Who holds it is the only one who
// does, so that lock files in the mirror are leftovers of a process that died.
func (m *Mirror) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(m.dir), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the git mirror: %w", err)
	}
	unlock, err = WaitForLock(ctx, m.dir+".lock", func() {
		m.sink.Emit(report.Event{Kind: report.StageProgress, Message: "waiting for another wbox that fetches from git"})
	})
	if err != nil {
		return nil, fmt.Errorf("locking the git mirror: %w", err)
	}
	m.removeStaleLocks()
	return unlock, nil
}

// removeStaleLocks removes git's own lock files. A file that can't be removed
// makes the next fetch fail and be explained.
func (m *Mirror) removeStaleLocks() {
	for _, at := range []string{"refs", "packed-refs.lock", "config.lock", "HEAD.lock", filepath.Join("objects", "info")} {
		_ = filepath.WalkDir(filepath.Join(m.dir, at), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
				_ = os.Remove(path)
			}
			return nil
		})
	}
}

// ErrNoRef says that the remote has no such ref.
var ErrNoRef = errors.New("there is no such ref")

// fetch gets refs of the remote, its version tags with them.
func (m *Mirror) fetch(ctx context.Context, refspecs ...string) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	shown := WithoutPassword(m.Remote)
	m.sink.Emit(report.Event{Kind: report.StageProgress, Message: "fetching from " + shown})
	args := append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", m.name,
		"+refs/tags/v*:refs/wbox/" + m.name + "/tags/v*"}, refspecs...)
	pause := m.pause
	for try := 1; ; try++ {
		_, err := m.git.Run(ctx, args...)
		if err == nil {
			return nil
		}
		if text := OutputOf(err); ctx.Err() == nil && strings.Contains(text, "couldn't find remote ref") ||
			strings.Contains(text, "not our ref") || strings.Contains(text, "unadvertised object") {
			return ErrNoRef
		}
		if err = m.git.Problem(ctx, err, shown, "fetching"); fault.ClassOf(err) != fault.Network || try == fetchTries || m.set.Offline {
			return err
		}
		m.sink.Emit(report.Event{Kind: report.Note, Message: fmt.Sprintf("%v; trying again in %s", err, pause)})
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause *= 2
	}
}

// View makes a repository in dir that sees the mirror's objects and of its refs
// the one remote's. It never fetches, so that looking for what isn't there is
// cheap, and git describe sees the tags of that remote alone.
func (m *Mirror) View(ctx context.Context, dir string) (*Git, error) {
	out, err := m.git.Run(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/wbox/"+m.name+"/")
	if err != nil {
		return nil, m.git.Problem(ctx, err, m.dir, "listing refs")
	}
	var refs strings.Builder
	for line := range strings.Lines(string(out)) {
		refs.WriteString(strings.Replace(line, "refs/wbox/"+m.name+"/", "refs/", 1))
	}
	alternates := filepath.ToSlash(filepath.Join(m.dir, "objects")) + "\n"
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/none\n", "packed-refs": refs.String(), "objects/info/alternates": alternates,
		"refs/keep": "", "config": "[core]\n\tbare = true\n\trepositoryformatversion = 0\n"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("making a view of the git mirror: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("making a view of the git mirror: %w", err)
		}
	}
	plain := *m.git
	plain.conf = nil
	for _, c := range m.git.conf {
		if !strings.HasPrefix(c[0], "remote.") {
			plain.conf = append(plain.conf, c)
		}
	}
	plain.env = nil
	return plain.In("", "GIT_DIR="+dir), nil
}

// Find returns the commit that ref stands for at the remote.
func (m *Mirror) Find(ctx context.Context, ref string) (string, error) {
	if regexp.MustCompile(`^[0-9a-f]{7,64}$`).MatchString(ref) {
		commit, err := m.FindHash(ctx, ref)
		if !errors.Is(err, ErrNoRef) {
			return commit, err
		}
	}
	sum := sha256.Sum256([]byte(ref))
	asked := "refs/wbox/" + m.name + "/asked/" + hex.EncodeToString(sum[:8])
	if err := m.fetch(ctx, "+"+remoteRef(ref)+":"+asked); err != nil {
		return "", err
	}
	commit, err := m.git.Text(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", asked+"^{commit}")
	if err != nil {
		return "", m.git.Problem(ctx, err, ref, "looking for its commit")
	}
	return commit, nil
}

// remoteRef is the name of a ref as the remote knows it.
func remoteRef(ref string) string {
	if m := regexp.MustCompile(`^(pull/\d+)(/head|/merge)?$`).FindStringSubmatch(ref); m != nil {
		if m[2] == "" {
			m[2] = "/head"
		}
		return "refs/" + m[1] + m[2]
	}
	return ref
}

// FindHash returns the commit with a full or shortened hash.
func (m *Mirror) FindHash(ctx context.Context, hash string) (string, error) {
	if commit, err := m.lookUp(ctx, hash); !errors.Is(err, ErrNoRef) {
		return commit, err
	}
	if len(hash) == 40 || len(hash) == 64 { // a server may give it, whatever branch it is on
		err := m.fetch(ctx, "+"+hash+":refs/wbox/"+m.name+"/asked/"+hash)
		if err == nil {
			return m.lookUp(ctx, hash)
		}
		if !errors.Is(err, ErrNoRef) {
			return "", err
		}
	}
	if err := m.fetch(ctx, "+refs/heads/*:refs/wbox/"+m.name+"/heads/*"); err != nil {
		return "", err
	}
	return m.lookUp(ctx, hash)
}

// lookUp looks for a hash among the commits of the remote that are here.
func (m *Mirror) lookUp(ctx context.Context, hash string) (string, error) {
	dir, err := os.MkdirTemp("", "wbox-view-")
	if err != nil {
		return "", fmt.Errorf("making a view of the git mirror: %w", err)
	}
	defer os.RemoveAll(dir)
	view, err := m.View(ctx, dir)
	if err != nil {
		return "", err
	}
	out, err := view.Run(ctx, "rev-parse", "--disambiguate="+hash)
	if err != nil {
		return "", m.git.Problem(ctx, err, hash, "looking for it")
	}
	var commits []string
	for _, id := range strings.Fields(string(out)) {
		if kind, err := view.Text(ctx, "cat-file", "-t", id); err != nil || kind != "commit" {
			continue
		}
		// Another remote's commit is not this one's.
		if ref, err := view.Text(ctx, "for-each-ref", "--count=1", "--contains="+id); err == nil && ref != "" {
			commits = append(commits, id)
		}
	}
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("looking for %s: %w", hash, ctx.Err())
	case len(commits) == 0:
		return "", ErrNoRef
	case len(commits) > 1:
		return "", &fault.Problem{Class: fault.Input, Field: m.set.Field, Value: hash, Why: "stands for " + strings.Join(commits, " and for "), Fix: "write more of it"}
	}
	return commits[0], nil
}

// Read returns a reader of the files of a commit; what isn't here is fetched.
func (m *Mirror) Read(ctx context.Context, commit string) FileReader {
	return func(name string) ([]byte, error) {
		data, err := m.git.Run(ctx, "cat-file", "blob", commit+":"+name)
		switch {
		case err == nil:
			return data, nil
		case strings.Contains(OutputOf(err), "does not exist in '"):
			return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		return nil, m.git.Problem(ctx, err, WithoutPassword(m.Remote), "reading "+name)
	}
}

// CheckOut writes the files of a commit into dir, with an index of its own
// beside it: no work tree is known to the mirror, so that any number can be
// made and dropped at once.
func (m *Mirror) CheckOut(ctx context.Context, commit, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("making a folder for the source: %w", err)
	}
	git := m.git.In(dir, "GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+dir+".index")
	defer os.Remove(dir + ".index")
	if _, err := git.Run(ctx, "read-tree", "--reset", "-u", commit); err != nil {
		return m.git.Problem(ctx, err, commit, "writing the files of the commit")
	}
	return nil
}

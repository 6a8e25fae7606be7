package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
)

// RealTree makes in dir, which must not exist, a git checkout with the whole
// source of a release ("v1.37.2"), put together from the modules that the
// module proxy has: one commit, tagged with the version. It is as large as
// Kubernetes' own repository without its history (300 MB) and needs the
// network the first time.
func RealTree(ctx context.Context, dir, version string) error {
	r := &repo{ctx: ctx, dir: dir}
	root, err := downloadModule(ctx, "k8s.io/kubernetes", version)
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
		return fmt.Errorf("copying the source: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return fmt.Errorf("reading the source: %w", err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return fmt.Errorf("reading the source: %w", err)
	}
	work := "go " + mod.Go.Version + "\n"
	if m := regexp.MustCompile(`(?m)^godebug .*\n`).Find(data); m != nil {
		work += string(m)
	}
	work += "use .\n"
	for _, rep := range mod.Replace {
		if to, ok := strings.CutPrefix(rep.New.Path, "./staging/"); ok {
			to = "staging/" + to
			work += "use ./" + to + "\n"
			if err := stagingTree(ctx, filepath.Join(dir, filepath.FromSlash(to)), rep.Old.Path, version, mod.Go.Version); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte(work), 0o644); err != nil {
		return fmt.Errorf("writing go.work: %w", err)
	}
	// The go command completes go.work.sum, which belongs to the tree.
	list := exec.CommandContext(ctx, "go", "list", "-buildvcs=false", "-deps", "./cmd/kubelet", "./cmd/kube-proxy", "./cmd/kubeadm", packageOf("kube-log-runner"))
	list.Dir, list.Env = dir, append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK="+filepath.Join(dir, "go.work"))
	if out, err := list.CombinedOutput(); err != nil {
		return fmt.Errorf("completing go.work.sum: %w\n%s", err, out[max(0, len(out)-2000):])
	}
	r.git("init", "--quiet", "--initial-branch=master", ".")
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", version)
	r.git("tag", "-a", "-m", version, version)
	return r.err
}

// stagingTree puts a staging module into the tree, and an empty one where no
// proxy has it. What it requires of its siblings is of no version there.
func stagingTree(ctx context.Context, dir, path, version, golang string) error {
	from, err := downloadModule(ctx, path, "v0"+strings.TrimPrefix(version, "v1"))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("copying %s: %w", path, err)
	}
	file, text := filepath.Join(dir, "go.mod"), []byte("module "+path+"\n\ngo "+golang+"\n")
	if err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making an empty %s: %w", path, err)
		}
		return os.WriteFile(file, text, 0o644)
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return fmt.Errorf("copying %s: %w", path, err)
	}
	if text, err = os.ReadFile(file); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	text = regexp.MustCompile(`(?m)^((?:\s+|require )k8s\.io/[a-z0-9-]+ )`+regexp.QuoteMeta("v0"+strings.TrimPrefix(version, "v1"))+`\b`).ReplaceAll(text, []byte("${1}v0.0.0"))
	if err := os.Chmod(file, 0o644); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// downloadModule returns where a module lies in the module cache.
func downloadModule(ctx context.Context, path, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var out bytes.Buffer
	cmd.Stdout = &out
	runErr := cmd.Run()
	var m struct{ Dir, Error string }
	if err := json.Unmarshal(out.Bytes(), &m); err != nil || m.Dir == "" {
		return "", fmt.Errorf("downloading %s@%s: %w", path, version, errors.Join(runErr, err, errors.New(m.Error)))
	}
	return m.Dir, nil
}

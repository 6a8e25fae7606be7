package kube

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/exec"
	"github.com/wbox-dev/wbox/builder/report"
)

// longestList is how long a kubeadm may take to print the images it wants.
const longestList = time.Minute

// publishedFile gets one file that was published with a version, checked
// against its published checksums; found is false where it or they are not there.
func (s *bucketSource) publishedFile(ctx context.Context, w *web, from, name string) (path string, found bool, err error) {
	sums, err := w.published(ctx, from)
	if err != nil || len(sums) == 0 {
		return "", false, err
	}
	pinned := map[string]string{}
	for algorithm, sum := range sums {
		pinned[inputName(name, algorithm)] = algorithm + ":" + sum
	}
	path, err = w.file(ctx, from, name, pinned)
	return path, err == nil, err
}

// ciImageTags asks the kubeadm of a CI build, where this machine can run it;
// else it reads the source of the build's commit.
func (s *bucketSource) ciImageTags(ctx context.Context, ref Ref, sink report.Sink) (ImageTags, error) {
	if runtime.GOOS == linux && runtime.GOARCH == "amd64" {
		w, err := newWeb(s.opts, s.root(), sink)
		if err != nil {
			return ImageTags{}, err
		}
		t := target{program: Kubeadm, goos: linux}
		path, found, err := s.publishedFile(ctx, w, s.fileURL(ref.Version, t), t.file())
		if err != nil {
			return ImageTags{}, err
		}
		if found {
			return askKubeadm(ctx, path, ref.Version)
		}
	}
	remote := s.opts.GitURL
	if remote == "" {
		remote = DefaultGitURL
	}
	return gitImageTags(ctx, remote, strings.TrimPrefix(semver.Build(ref.Version), "+"), ref.Version, s.opts, sink)
}

// askKubeadm runs a kubeadm, after it was found to be that of the version.
func askKubeadm(ctx context.Context, path, version string) (ImageTags, error) {
	if _, err := Verify(path, Expect{Name: Kubeadm, GOOS: linux, Standalone: version}); err != nil {
		return ImageTags{}, err
	}
	if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // a program
		return ImageTags{}, fmt.Errorf("making kubeadm a program: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, longestList)
	defer cancel()
	out, err := exec.Run(ctx, exec.Command{Program: path, Args: []string{"config", "images", "list", "--kubernetes-version", version, "--image-repository", "registry.k8s.io"}})
	if err != nil {
		return ImageTags{}, fmt.Errorf("asking kubeadm %s for its images: %w", version, err)
	}
	tags, err := parseImageList(string(out))
	tags.From = "kubeadm config images list of " + version
	return tags, err
}

// ImageArchive downloads the archive with the image of a component (such as
// "kube-apiserver") that a CI build has beside its programs, for linux/amd64,
// and returns where it is kept. One that is not published is a *fault.Problem
// of class fault.Input.
func ImageArchive(ctx context.Context, src Source, ref Ref, component string, sink report.Sink) (string, error) {
	s, ok := src.(*bucketSource)
	if !ok {
		return "", versionProblem(field, ref.Version, "has no archives of images", "give a CI build")
	}
	w, err := newWeb(s.opts, s.root(), sink)
	if err != nil {
		return "", err
	}
	from := s.base(ref.Version) + "/bin/linux/amd64/" + component + ".tar"
	path, found, err := s.publishedFile(ctx, w, from, component+".tar")
	if err == nil && !found {
		err = &fault.Problem{Class: fault.Input, Field: field, Value: s.text, Why: from + " does not exist", Fix: "builds are kept for 90 days: give a newer one"}
	}
	return path, err
}

package images

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Archive is the Source of the image in a file that "docker save" wrote, such
// as bin/linux/amd64/kube-apiserver.tar of a CI build. What it holds is read
// from its RepoTags: a file with another component or tag than asked for, or
// with several images, is a *fault.Problem of class fault.Input. Its layers are
// compressed as they are sent, always in the same way.
func Archive(file, component, tag string) (Source, error) {
	bad := func(why string, err error) error {
		return &fault.Problem{Class: fault.Input, Field: "image archive", Value: file, Why: why, Err: err, Fix: "remove it, so that it is downloaded again, or use another version"}
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		return nil, bad("is no archive of images", err)
	}
	if len(manifest) != 1 {
		return nil, bad(fmt.Sprintf("holds %d images instead of one", len(manifest)), nil)
	}
	for _, text := range manifest[0].RepoTags {
		t, err := name.NewTag(text, name.StrictValidation)
		if err != nil {
			return nil, bad("names an image "+text, err)
		}
		repo := t.RepositoryStr()
		base := repo[strings.LastIndex(repo, "/")+1:]
		// Kubernetes' own name the architecture too, such as kube-apiserver-amd64.
		if t.TagStr() != tag || !regexp.MustCompile("^"+regexp.QuoteMeta(component)+"(-(amd64|arm64|arm|ppc64le|s390x))?$").MatchString(base) {
			continue
		}
		img, err := tarball.ImageFromPath(file, &t)
		if err != nil {
			return nil, bad("is damaged", err)
		}
		return Built(img, file), nil
	}
	return nil, bad(fmt.Sprintf("holds %s instead of %s:%s", strings.Join(manifest[0].RepoTags, ", "), component, tag), nil)
}

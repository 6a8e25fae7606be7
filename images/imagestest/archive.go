package imagestest

import (
	"bytes"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Archive makes an archive of an image as "docker save" does.
func Archive(tag string, s Spec) ([]byte, error) {
	m, err := Make(s)
	if err != nil {
		return nil, err
	}
	t, err := name.NewTag(tag)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = tarball.Write(t, m.Image, &out)
	return out.Bytes(), err
}

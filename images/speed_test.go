package images

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/images/imagestest"
)

// TestFasterThanSkopeo compares copies of an image of five platforms with thirty
// layers, in turns: within one registry, where nothing has to be sent, and from
// one to another, where both wait for the registry most of the time.
func TestFasterThanSkopeo(t *testing.T) {
	_, a := dockerRegistry(t, "")
	_, b := dockerRegistry(t, "")
	skopeo(t, "--version")
	s := five(6)
	s.Size = 1 << 20
	front := imagestest.InFront(a)
	defer front.Close()
	m := pushed(t, front, "src/app:v1", s)
	for _, c := range []struct {
		name, to string
		most     time.Duration // of what skopeo takes, in percent
	}{{"to another repository", a, 100}, {"to another registry", b, 150}} {
		t.Run(c.name, func(t *testing.T) {
			var ours, theirs []time.Duration
			for i := range 5 {
				start := time.Now()
				copied(t, newTestClient(), a+"/src/app:v1", fmt.Sprintf("%s/ours%d/app:v1", c.to, i), CopyOptions{}, m.Digest)
				ours = append(ours, time.Since(start))
				start = time.Now()
				skopeo(t, "copy", "--all", "--preserve-digests", "-q", "--src-tls-verify=false", "--dest-tls-verify=false", "docker://"+a+"/src/app:v1", fmt.Sprintf("docker://%s/theirs%d/app:v1", c.to, i))
				theirs = append(theirs, time.Since(start))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			t.Logf("medians of 5: ours %v, skopeo %v", ours[2].Round(time.Millisecond), theirs[2].Round(time.Millisecond))
			if ours[2]*100 >= theirs[2]*c.most {
				t.Errorf("ours %v, skopeo %v", ours, theirs)
			}
		})
	}
}

// skopeo changes digests here, and says nothing (a layer that is not
// compressed): the copy must not.
func TestUncompressedLayersKeepTheirDigest(t *testing.T) {
	_, a := dockerRegistry(t, "")
	_, b := dockerRegistry(t, "")
	front := imagestest.InFront(a)
	defer front.Close()
	m := pushed(t, front, "src/raw:v1", imagestest.Spec{Layers: 2, Size: 200_000, Platforms: []v1.Platform{imagestest.Linux("amd64"), imagestest.Linux("arm64")}, Uncompressed: true})
	copied(t, newTestClient(), a+"/src/raw:v1", b+"/x/raw:v1", CopyOptions{}, m.Digest)
	if seen := skopeoDigest(t, b+"/x/raw:v1"); seen != m.Digest.String() {
		t.Errorf("skopeo sees %s, want %s", seen, m.Digest)
	}
	complete(t, newTestClient(), b+"/x/raw")
	skopeo(t, "copy", "--all", "-q", "--src-tls-verify=false", "--dest-tls-verify=false", "docker://"+a+"/src/raw:v1", "docker://"+b+"/theirs/raw:v1")
	t.Logf("ours %s, skopeo's copy %s", m.Digest, skopeoDigest(t, b+"/theirs/raw:v1"))
}

package images

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/images/imagestest"
)

// TestFasterThanSkopeo compares copies of images of five platforms with thirty
// layers, in turns: within one registry, where nothing has to be sent, and from
// one to another. Every copy is of content that neither has seen before, since
// skopeo remembers which registries have a blob.
func TestFasterThanSkopeo(t *testing.T) {
	_, a := dockerRegistry(t, "")
	_, b := dockerRegistry(t, "")
	skopeo(t, "--version")
	front := imagestest.InFront(a)
	defer front.Close()
	const rounds = 5
	made := map[string]imagestest.Made{}
	for i := range 2 * rounds {
		s := five(6)
		s.Size, s.Seed, s.Uncompressed = 1<<20, uint64(1000+i), true
		name := fmt.Sprintf("src%d/app:v1", i)
		made[name] = pushed(t, front, name, s)
	}
	for _, c := range []struct{ name, to string }{{"to another repository", a}, {"to another registry", b}} {
		t.Run(c.name, func(t *testing.T) {
			var ours, theirs []time.Duration
			for i := range rounds {
				from := fmt.Sprintf("src%d/app:v1", i)
				start := time.Now()
				copied(t, newTestClient(), a+"/"+from, c.to+"/copy/"+from, CopyOptions{}, made[from].Digest)
				ours = append(ours, time.Since(start))
				from = fmt.Sprintf("src%d/app:v1", rounds+i)
				start = time.Now()
				skopeo(t, "copy", "--all", "--preserve-digests", "-q", "--src-tls-verify=false", "--dest-tls-verify=false", "docker://"+a+"/"+from, "docker://"+c.to+"/copy/"+from)
				theirs = append(theirs, time.Since(start))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			t.Logf("medians of %d: ours %v, skopeo %v", rounds, ours[rounds/2].Round(time.Millisecond), theirs[rounds/2].Round(time.Millisecond))
			if ours[rounds/2] >= theirs[rounds/2] {
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

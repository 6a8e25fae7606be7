package builder

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wbox-dev/wbox/builder/stages/preload"
	"github.com/wbox-dev/wbox/images/archive"
	"github.com/wbox-dev/wbox/images/build"
)

// What wbox images build makes for Windows nodes can lie in the box, whatever its
// build, under the name that the manifest asks for.
func TestPreloadTakesWhatIsBuiltHere(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "kube-proxy.exe")
	if err := os.WriteFile(exe, []byte("MZ"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := build.Build(t.Context(), build.Request{Version: "v1.38.0-alpha.1.5+0123abcd", KubeProxy: exe, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "windows.tar")
	if _, err := archive.Save(t.Context(), file, []archive.Entry{{Names: []string{made.Images[0].Name}, Source: made.Images[0].Source}}, archive.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, build := range []int{17763, 20348, 26100} {
		r := resolvedFor(nil, file)
		r.Edition.Build = build
		if err := r.resolvePreload(t.Context(), ResolveOptions{Offline: true}, nil); err != nil {
			t.Fatal(err)
		}
		got := preload.Images(r.preload)
		if len(got) != 1 || got[0].Name != made.Images[0].Name || got[0].Digest != made.Images[0].Digest {
			t.Errorf("build %d: got %+v, made %+v", build, got, made.Images[0])
		}
	}
}

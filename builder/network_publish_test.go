package builder

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/box"
	"github.com/wbox-dev/wbox/builder/network"
)

func TestTheNetworkLiesBesideTheBox(t *testing.T) {
	dir := t.TempDir()
	s := network.Settings{Proxy: "http://me:sesame@proxy.lan:3128"}
	path, err := writeNetwork(t.Context(), dir, s)
	if err != nil || path != filepath.Join(dir, box.NetworkFile) {
		t.Fatalf("got %q, %v", path, err)
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o600 && runtime.GOOS != "windows" { // there the folder decides
		t.Errorf("its mode is %v (%v): it may hold a password", fi.Mode(), err)
	}
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), `"winHTTPProxy": "proxy.lan:3128"`) {
		t.Errorf("got %s, %v", data, err)
	}
	if err := checkOutput(dir); err != nil {
		t.Errorf("the next build refuses the folder: %v", err)
	}
	// A build that says nothing of the network leaves no old settings behind.
	if path, err := writeNetwork(t.Context(), dir, network.Settings{ClusterNetworks: []string{"10.0.0.0/8"}}); path != "" || err != nil {
		t.Errorf("got %q, %v", path, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

package node

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/quirks"
)

func TestKubeletArguments(t *testing.T) {
	for _, c := range []struct {
		minor int
		pod   bool // --pod-infra-container-image, which kubelet refuses since 1.35
	}{{34, true}, {35, false}, {37, false}} {
		got := kubeletArgs(quirks.Minor(c.minor))
		has := slices.ContainsFunc(got, func(a string) bool { return strings.HasPrefix(a, "--pod-infra-container-image=") })
		if has != c.pod || !slices.Contains(got, "--windows-service") {
			t.Errorf("1.%d: %v", c.minor, got)
		}
	}
}

// The layer is keyed by the minor and its quirks, and by nothing of the binaries.
func TestFingerprint(t *testing.T) {
	fp := func(cfg Config) string {
		b, err := json.Marshal(New(cfg, "cni", "windows", bake.Host{}).Fingerprint())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	base := Config{Minor: 37, WindowsBuild: 20348}
	if fp(base) != fp(base) {
		t.Error("the same configuration has two fingerprints")
	}
	for _, other := range []Config{{Minor: 36, WindowsBuild: 20348}, {Minor: 37, WindowsBuild: 26100}} {
		if fp(base) == fp(other) {
			t.Errorf("%+v has the fingerprint of %+v", other, base)
		}
	}
	for _, f := range []string{"50-prepare-node.ps1", "Sync-WboxPayload.ps1", "Wbox.psm1"} {
		if !strings.Contains(fp(base), "scripts/guest/"+f) {
			t.Errorf("the fingerprint misses %s", f)
		}
	}
	if strings.Contains(fp(Config{Minor: 37, WindowsBuild: 17763}), "null") {
		t.Error("a list is null in the parameters")
	}
}

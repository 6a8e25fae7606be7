package box

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/golden"
)

// ordered are versions of Kubernetes with revisions, the oldest first.
var ordered = []struct {
	kubernetes string
	revision   int
}{
	{"v1.37.2-rc.0", 0},
	{"v1.37.2-vendor.1", 0},
	{"v1.37.2", 0},
	{"v1.37.2-5+0123abcd", 0},
	{"v1.37.2-14+0123abcd-dirty", 0},
	{"v1.37.2", 1},
	{"v1.37.2+0123abcd", 2},
	{"1.37.2", 10},
	{"v1.37.2", 20261201},
	{"v1.37.3-rc.0.7+0123abcd", 0},
	{"v1.37.3", 0},
	{"v1.38.0-alpha.0", 0},
	{"v1.38.0-alpha.1", 0},
	{"v1.38.0-alpha.1", 23},
	{"v1.38.0-alpha.1-dirty", 24},
	{"v1.38.0-alpha.1.5+0123abcd", 0},
	{"v1.38.0-alpha.1.23+fb9b3e5", 0},
	{"v1.38.0-alpha.1.23+fb9b3e5", 1},
	{"v1.38.0-alpha.2", 0},
	{"v1.38.0-alpha.10", 0},
	{"v1.38.0-beta.0", 0},
	{"v1.38.0-rc.1", 0},
	{"v1.38.0", 0},
}

func versions(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, o := range ordered {
		v, err := Version(o.kubernetes, o.revision)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func TestVersionGolden(t *testing.T) {
	var b strings.Builder
	for i, v := range versions(t) {
		fmt.Fprintf(&b, "%-28s %-9d %s\n", ordered[i].kubernetes, ordered[i].revision, v)
		if !rubyForm.MatchString(v) {
			t.Errorf("%s is no version for RubyGems", v)
		}
	}
	golden.Compare(t, *update, "versions.txt", []byte(b.String()))
}

// TestVersionOrder asks RubyGems itself.
func TestVersionOrder(t *testing.T) {
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Skip("needs ruby")
	}
	const script = `v = ARGV.map { |a| Gem::Version.new(a) }; v.each_cons(2) { |a, b| abort "#{a} is not older than #{b}" unless a < b }`
	if out, err := exec.CommandContext(t.Context(), ruby, append([]string{"-rrubygems", "-e", script}, versions(t)...)...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestVersionRefuses(t *testing.T) {
	for _, k := range []string{"", "latest", "1.37", "v1.37.2.1", "v0.0.0-master+$Format:%H$x y", "v1.37.2-alpha..1", "v1.37.2-", "V1.37.2", "v1.37.2_1", "kubeadm.20191112", "v1.37.2-a_b", "v1.37.2 ", "-v1.37.2"} {
		v, err := Version(k, 0)
		if k == "v0.0.0-master+$Format:%H$x y" { // an export without version; the name is what it is
			if err != nil || v != "0.0.0-master.0" {
				t.Errorf("%q: %q, %v", k, v, err)
			}
			continue
		}
		if fault.ClassOf(err) != fault.Usage {
			t.Errorf("%q: got %q, %v", k, v, err)
		}
	}
	if _, err := Version("v1.37.2", -1); fault.ClassOf(err) != fault.Usage {
		t.Errorf("revision -1: %v", err)
	}
}

func FuzzVersion(f *testing.F) {
	for _, o := range ordered {
		f.Add(o.kubernetes, o.revision)
	}
	f.Add("v1.37.2-\xff", 0)
	f.Fuzz(func(t *testing.T, kubernetes string, revision int) {
		v, err := Version(kubernetes, revision)
		if err != nil {
			return
		}
		if !rubyForm.MatchString(v) || strings.ContainsAny(v, "+_/ \n") {
			t.Errorf("%q, %d: %q", kubernetes, revision, v)
		}
		if name := FileName("o/b", v); !ownFile.MatchString(name) {
			t.Errorf("%q is not recognised as ours", name)
		}
	})
}

func TestValidName(t *testing.T) {
	for _, good := range []string{"local/wbox-ws2022-calico", "a/b", "A1/b_c.d-e", "local/wbox-ws2025-none-stand-in"} {
		if err := ValidName(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "noslash", "a/b/c", "with space/x", "../evil/x", "../x", "a/..", "ä/x", "a/", "/b", ".a/b", "a/-b", "a./b", "a/b.",
		"a/b\n", "a/b-VAGRANTSLASH-c", "a/" + strings.Repeat("x", 99)} {
		if err := ValidName(bad); fault.ClassOf(err) != fault.Usage {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

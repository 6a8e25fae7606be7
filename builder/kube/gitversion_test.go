package kube

import (
	"os"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/report"
)

func TestDescribedVersion(t *testing.T) {
	for _, tt := range []struct {
		described string
		dirty     bool
		want      string // empty: refused
	}{
		{"v1.36.3", false, "v1.36.3"},
		{"v1.36.3", true, "v1.36.3-dirty"},
		{"v1.36.3-5-g0123456789abcd", false, "v1.36.3-5+0123456789abcd"},
		{"v1.36.3-5-g0123456789abcd", true, "v1.36.3-5+0123456789abcd-dirty"},
		{"v1.37.0-alpha.0-2-g0123456789abcd", false, "v1.37.0-alpha.0.2+0123456789abcd"},
		{"v1.37.0-rc.1-12-g0123456789abcd", true, "v1.37.0-rc.1.12+0123456789abcd-dirty"},
		{"v1.38.0-beta.0", false, "v1.38.0-beta.0"},
		{"v1.13.0-5-g0123456789abcd", false, ""}, // older than what can be compiled
		{"v2.0.0", false, ""},
		{"v1.36", false, ""},
		{"vendor-1", false, ""},
		{"v1.36.3_fork", false, ""},
		{"", true, ""},
	} {
		got, err := describedVersion(tt.described, tt.dirty)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q (dirty: %v): got %q, %v", tt.described, tt.dirty, got, err)
		}
	}
}

func FuzzDescribedVersion(f *testing.F) {
	f.Add("v1.37.0-alpha.0-2-g0123456789abcd", true)
	f.Add("v1.36.3", false)
	f.Fuzz(func(t *testing.T, described string, dirty bool) {
		v, err := describedVersion(described, dirty)
		if err != nil {
			return
		}
		if again, err := normalizeVersion(v, true); err != nil || again != v {
			t.Errorf("%q gives %q, which is not normal", described, v)
		}
		if dirty != strings.HasSuffix(v, "-dirty") && dirty {
			t.Errorf("%q gives %q, which hides that it is dirty", described, v)
		}
	})
}

// A repository that lacks tags gives itself away.
func TestCheckMinor(t *testing.T) {
	for _, tt := range []struct {
		base string
		ok   bool
		warn bool
	}{
		{"	DefaultKubeBinaryVersion = \"1.37\"\n", true, false},
		{"	DefaultKubeBinaryVersion = \"1.38\"\n", true, true},
		{"	DefaultKubeBinaryVersion = \"1.30\"\n", false, false},
		{"package version\n", true, false},
		{"", true, false},
	} {
		rec := &recorder{}
		err := checkMinor("v1.37.2", func(string) ([]byte, error) {
			if tt.base == "" {
				return nil, os.ErrNotExist
			}
			return []byte(tt.base), nil
		}, rec)
		if (err == nil) != tt.ok || (len(rec.messages(report.Warning)) > 0) != tt.warn {
			t.Errorf("%q: got %v and %v", tt.base, err, rec.events)
		}
	}
}

package kube

import (
	"errors"
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

func TestBuildDate(t *testing.T) {
	for epoch, want := range map[string]string{"": "2026-08-01T12:00:00Z", "0": "1970-01-01T00:00:00Z", "1e3": "", "-1": "", "99999999999999": ""} {
		got, err := buildDateOf(Options{Env: []string{"SOURCE_DATE_EPOCH=" + epoch}}, "1785585600")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("SOURCE_DATE_EPOCH=%q: got %q, %v", epoch, got, err)
		}
	}
}

func TestGitEnvironment(t *testing.T) {
	g := (&gitTool{conf: [][2]string{{"gc.auto", "0"}}}).with("remote.x.url", "https://u:p@example.com/k").in("/w", "GIT_DIR=/d")
	env := "\n" + strings.Join(g.environ([]string{"PATH=/bin", "GIT_DIR=/users", "GIT_INDEX_FILE=/users/index", "GIT_SSH_COMMAND=mine"}), "\n") + "\n"
	for _, want := range []string{"PATH=/bin", "GIT_DIR=/d", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_1=remote.x.url", "GIT_SSH_COMMAND=mine"} {
		if strings.Count(env, "\n"+want+"\n") != 1 {
			t.Errorf("%s is not once in%s", want, env)
		}
	}
	if strings.Contains(env, "/users") || strings.Contains(env, "BatchMode") {
		t.Errorf("got%s", env)
	}
	if got := withoutPassword("https://u:p@example.com/k"); got != "https://example.com/k" {
		t.Errorf("shown as %s", got)
	}
	if err := gitProblem(t.Context(), errors.New("x"), "v", "fetching"); err == nil || !strings.Contains(err.Error(), "fetching: x") {
		t.Errorf("got %v", err)
	}
}

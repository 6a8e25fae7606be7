package gosource

import (
	"errors"
	"strings"
	"testing"
)

func TestBuildDate(t *testing.T) {
	for epoch, want := range map[string]string{"": "2026-08-01T12:00:00Z", "0": "1970-01-01T00:00:00Z", "1e3": "", "-1": "", "99999999999999": ""} {
		got, err := Settings{Env: []string{"SOURCE_DATE_EPOCH=" + epoch}}.BuildDate("1785585600")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("SOURCE_DATE_EPOCH=%q: got %q, %v", epoch, got, err)
		}
	}
}

func TestGitEnvironment(t *testing.T) {
	g := (&Git{conf: [][2]string{{"gc.auto", "0"}}}).With("remote.x.url", "https://u:p@example.com/k").In("/w", "GIT_DIR=/d")
	env := "\n" + strings.Join(g.environ([]string{"PATH=/bin", "GIT_DIR=/users", "GIT_INDEX_FILE=/users/index", "GIT_SSH_COMMAND=mine"}), "\n") + "\n"
	for _, want := range []string{"PATH=/bin", "GIT_DIR=/d", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_1=remote.x.url", "GIT_SSH_COMMAND=mine"} {
		if strings.Count(env, "\n"+want+"\n") != 1 {
			t.Errorf("%s is not once in%s", want, env)
		}
	}
	if strings.Contains(env, "/users") || strings.Contains(env, "BatchMode") {
		t.Errorf("got%s", env)
	}
	if got := WithoutPassword("https://u:p@example.com/k"); got != "https://example.com/k" {
		t.Errorf("shown as %s", got)
	}
	if err := g.Problem(t.Context(), errors.New("x"), "v", "fetching"); err == nil || !strings.Contains(err.Error(), "fetching: x") {
		t.Errorf("got %v", err)
	}
}

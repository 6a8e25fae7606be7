// Package gittest runs git for the repositories that tests make: without the
// user's configuration, with an author of its own, and with times that depend on
// nothing, so that commits are the same everywhere. Nothing but tests may import
// it, and it must not import anything of ours.
package gittest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Run runs git in a folder and returns what it prints. A commit that it makes
// is a minute younger for each of the commits before it.
func Run(ctx context.Context, dir string, before int, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	when := fmt.Sprintf("%d +0200", 1785585600+60*before)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+when, "GIT_COMMITTER_DATE="+when, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("running git %s: %w\n%s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), err
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

// full is a standard output on a file system without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestALostResultIsAnError(t *testing.T) {
	for _, args := range []string{"--help", "build --help", "help plan", "version", "version --format json", "completion bash", "box"} {
		var said bytes.Buffer
		code := Main(t.Context(), strings.Fields(args), nil, full{}, &said)
		if code != int(fault.Failed) || strings.Count(said.String(), "no space left") != 1 {
			t.Errorf("wbox %s: code %d, said %q", args, code, said.String())
		}
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	for _, args := range []string{"--help", "build --help", "plan --help", "box check --help", "help", "help build", "version --help"} {
		var out, said bytes.Buffer
		if code := Main(t.Context(), strings.Fields(args), nil, &out, &said); code != 0 || said.Len() > 0 {
			t.Errorf("wbox %s: code %d, said %q", args, code, said.String())
		}
		_, flags, _ := strings.Cut(out.String(), "\nFlags:\n")
		for _, line := range strings.Split(flags, "\n") {
			if len([]rune(line)) > 80 && !strings.Contains(line, "://") { // a URL is not broken
				t.Errorf("wbox %s: wider than a terminal: %s", args, line)
			}
		}
	}
}

// Help tells where results are by default, not where they are for the one who asks.
func TestHelpIsTheSameEverywhere(t *testing.T) {
	t.Setenv("WBOX_STORE", "/my/own/place")
	var out bytes.Buffer
	Main(t.Context(), []string{"--help"}, nil, &out, &out)
	if strings.Contains(out.String(), "/my/own/place") {
		t.Error("the help holds what WBOX_STORE is set to")
	}
}

func TestStoreComesFromFlagThenEnvironment(t *testing.T) {
	place := t.TempDir()
	t.Setenv("WBOX_STORE", place)
	for _, c := range []struct{ flag, want string }{{"", place}, {place + "2", place + "2"}} {
		got, err := (&app{store: c.flag}).storeDir()
		if err != nil || got != c.want {
			t.Errorf("--store %q: got %s, %v; want %s", c.flag, got, err, c.want)
		}
	}
}

func TestAnInterruptedRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, said bytes.Buffer
	code := Main(ctx, []string{"plan", "--k8s", "v1.37.2", "--iso", "none.iso", "--store", t.TempDir()}, nil, &out, &said)
	if code != int(fault.Interrupted) || out.Len() > 0 || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("code %d, printed %q, said %q", code, out.String(), said.String())
	}
}

func TestShellQuote(t *testing.T) {
	for want, s := range map[string]string{
		"/a/b-c.json":    "/a/b-c.json",
		"''":             "",
		"'/a b/c.json'":  "/a b/c.json",
		`'/it'\''s/c'`:   "/it's/c",
		"'/ü/c'":         "/ü/c",
		"'$HOME/`x`/\"'": "$HOME/`x`/\"",
		"'~/c'":          "~/c",
	} {
		if got := shellQuote(s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

package programs

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/machinetest"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

func env(t *testing.T) (*Env, *machinetest.Fake) {
	t.Helper()
	c := t.TempDir()
	if err := state.Create(c, state.State{ComputerName: "WIN-ABC"}); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	fake := &machinetest.Fake{}
	return &Env{State: store, Machine: fake, C: c, User: "wbox"}, fake
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Table() {
		if p.Name != strings.ToLower(p.Name) || strings.HasSuffix(p.Name, ".exe") || p.Source == "" || seen[p.Name] {
			t.Errorf("row %q: names are unique, in lower case, without .exe, with a source", p.Name)
		}
		seen[p.Name] = true
	}
}

func TestRun(t *testing.T) {
	for line, want := range map[string]Result{
		"hostname":                       {Stdout: "WIN-ABC\r\n"},
		`C:\Windows\System32\WHOAMI.EXE`: {Stdout: "win-abc\\wbox\r\n"},
	} {
		e, _ := env(t)
		if got := Run(context.Background(), e, line, nil); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for _, line := range []string{"frobnicate", `C:\k\shutdown.exe /s`, `D:\whoami`} {
		e, _ := env(t)
		words := strings.Fields(line)
		if got := Run(context.Background(), e, words[0], words[1:]); got.Exit != NotFound || got.Stderr == "" {
			t.Errorf("%s: %+v", line, got)
		}
	}
	for _, line := range []string{"hostname -s", "whoami /all", "shutdown", "shutdown /x", "shutdown /r /t x", "shutdown /r /s", "shutdown r", "shutdown /s /d p:1:70000"} {
		e, fake := env(t)
		words := strings.Fields(line)
		if got := Run(context.Background(), e, words[0], words[1:]); got.Exit == 0 || len(fake.Restarts()) > 0 {
			t.Errorf("%s: %+v, restarts %v", line, got, fake.Restarts())
		}
	}
}

func TestShutdown(t *testing.T) {
	for line, want := range map[string][]machinetest.Restart{
		"/r /t 0 /f":              {{Delay: 0}},
		"-s -t 5":                 {{Delay: 5 * time.Second, Off: true}},
		"/s":                      {{Delay: 30 * time.Second, Off: true}},
		"/R /T 1 /c bye /d p:4:1": {{Delay: time.Second}},
	} {
		e, fake := env(t)
		if got := Run(context.Background(), e, "shutdown.exe", strings.Fields(line)); got != (Result{}) {
			t.Errorf("%s: %+v", line, got)
		}
		if got := fake.Restarts(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

func TestShutdownAbort(t *testing.T) {
	e, fake := env(t)
	if got := Run(context.Background(), e, "shutdown", []string{"/a"}); got.Exit != 1116 {
		t.Errorf("nothing to abort: %+v", got)
	}
	Run(context.Background(), e, "shutdown", []string{"/r", "/t", "60"})
	if got := Run(context.Background(), e, "shutdown", []string{"/a"}); got.Exit != 0 || len(fake.Restarts()) != 0 {
		t.Errorf("abort: %+v, restarts %v", got, fake.Restarts())
	}
}

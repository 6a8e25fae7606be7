package bake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/guest"
	guestfake "github.com/wbox-dev/wbox/builder/guest/fake"
	"github.com/wbox-dev/wbox/builder/report"
)

// fails makes the ward's second script fail.
func (w *ward) fails() {
	w.guest.Scripts["20-b"] = func(guestfake.Run) guestfake.Reply {
		return guestfake.Reply{State: guest.Failed, Message: "no such feature"}
	}
}

// TestKeep: a machine whose guest failed stays up until the keeper lets it go,
// says how to get in, and keeps its secrets to itself.
func TestKeep(t *testing.T) {
	for name, refuses := range map[string]bool{"a script fails": false, "the guest is a stranger": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWard(t)
				w.fails()
				w.guest.Refuse = refuses
				held := false
				w.layer.Host.Keep = func(over <-chan struct{}) {
					held = true
					time.Sleep(time.Hour)
					w.mayLookInto(t, over)
				}
				err, took := w.bakes(dir, true)
				if !held || took < time.Hour || !fault.Stands(err) || fault.ClassOf(err) != fault.Guest {
					t.Fatalf("kept: %v, after %v: %v", held, took, err)
				}
				w.explained(err, dir)
				if left, _ := filepath.Glob(filepath.Join(dir, "run", "layer", secretsFile)); len(left) > 0 {
					t.Errorf("%v is still there", left)
				}
			})
		})
	}
}

// mayLookInto checks what a user has who wants to look into the kept machine.
func (w *ward) mayLookInto(t *testing.T, over <-chan struct{}) {
	t.Helper()
	select {
	case <-over:
		t.Error("the machine is off")
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept == nil {
		t.Fatal("nobody said how to get in")
	}
	k := *w.kept
	if k.WinRM != "https://127.0.0.1:1/wsman" || k.Console != "vnc://127.0.0.1:1" || k.Account != "u" || k.Reason == "" || len(k.Certificate) != 64 || k.PID != os.Getpid() {
		t.Errorf("%+v", k)
	}
	for _, path := range []string{k.Screenshot, k.RunDir} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(k.Secrets)
	if err != nil || !strings.Contains(string(text), "secret") || !strings.Contains(string(text), "fake-vnc") {
		t.Errorf("the passwords: %q, %v", text, err)
	}
	if fi, err := os.Stat(k.Secrets); err != nil || fi.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // there the folder decides
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	if all := fmt.Sprintf("%+v %s", k, strings.Join(k.Lines(), "\n")); strings.Contains(all, "secret ") || strings.Contains(all, "fake-vnc") {
		t.Errorf("a password is in %s", all)
	}
}

func TestWhatIsNotKept(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		setup  func(w *ward, cancel func())
		held   bool
		stands bool
	}{
		"a bake that goes well": {func(*ward, func()) {}, false, false},
		"a machine that is off": {func(w *ward, _ func()) {
			w.between(5, 5, func(context.Context, string, io.Writer) error { w.guest.TurnOff(); return guestfake.ErrConnection() })
		}, false, false},
		"a machine that does not start": {func(w *ward, _ func()) { w.driver.ProbeErr = boom }, false, false},
		"a bake that was cancelled": {func(w *ward, cancel func()) {
			w.between(5, 5, func(context.Context, string, io.Writer) error { cancel(); return guestfake.ErrConnection() })
		}, false, false},
		"a machine that is turned off while it is kept": {func(w *ward, _ func()) {
			w.fails()
			time.AfterFunc(time.Hour, w.guest.TurnOff)
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWard(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w.ctx = ctx
				c.setup(w, cancel)
				held := false
				w.layer.Host.Keep = func(off <-chan struct{}) { held = true; <-off }
				err, _ := w.bakes(dir, true)
				if held != c.held || fault.Stands(err) != c.stands {
					t.Errorf("kept: %v, %v", held, err)
				}
			})
		})
	}
}

// A Kept that people read has every address on a line of its own.
func TestKeptLines(t *testing.T) {
	k := report.Kept{Name: "proof", Reason: "it broke", PID: 7, WinRM: "http://127.0.0.1:5985/wsman", Account: "vagrant", Secrets: "/r/way-in.txt", RunDir: "/r", SerialLog: "/r/serial.log"}
	text := strings.Join(k.Lines(), "\n")
	for _, want := range []string{"failed: it broke", "SIGTERM to process 7", "http://127.0.0.1:5985/wsman (NTLM)", "in /r/way-in.txt"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "console") || strings.Contains(text, "screenshot") {
		t.Errorf("%q has what is not there", text)
	}
}

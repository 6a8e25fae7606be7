package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// ill boots an agent that a bake can talk to, and returns a function that
// arranges for a fault.
func ill(t *testing.T) (*bench, *guest.Session, func(exit int, words ...string)) {
	t.Helper()
	b := newBench(t, state.State{Commands: []state.Command{{Pass: "oobeSystem", Line: logonCommand}}})
	if err := b.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, b.session(t), func(exit int, words ...string) {
		t.Helper()
		if r := b.Program(t.Context(), "wbox", ownProgram, append([]string{"fault"}, words...)); r.Exit != exit {
			t.Fatalf("fault %q: %+v", words, r)
		}
	}
}

// TestScriptFaults: each spoils the next script and no other.
func TestScriptFaults(t *testing.T) {
	b, s, fault := ill(t)
	const script = "10-enable-winrm"
	run := func(limit time.Duration) error {
		_, err := s.RunScript(t.Context(), script, guest.Test, limit)
		return err
	}
	var u *guest.Unknown
	for name, c := range map[string]struct {
		limit time.Duration
		right func(error) bool
	}{
		"garbage": {time.Minute, func(err error) bool { return strings.Contains(err.Error(), "is no result line") }},
		"half":    {time.Minute, func(err error) bool { return strings.Contains(err.Error(), "unexpected EOF") }},
		"hang":    {300 * time.Millisecond, func(err error) bool { return errors.As(err, &u) && !errors.Is(err, guest.ErrLost) }},
		"drop":    {time.Minute, func(err error) bool { return errors.Is(err, guest.ErrLost) }},
		"reboot":  {300 * time.Millisecond, func(err error) bool { return len(b.fake.Restarts()) == 1 && !b.fake.Restarts()[0].Off }},
		"off":     {300 * time.Millisecond, func(err error) bool { return b.fake.Restarts()[len(b.fake.Restarts())-1].Off }},
	} {
		fault(0, name)
		if _, err := s.RunScript(t.Context(), "00-test-ready", guest.Test, time.Minute); err != nil {
			t.Errorf("%s: the test of readiness is spoiled: %v", name, err)
		}
		if err := run(c.limit); err == nil || !c.right(err) {
			t.Errorf("%s: %v", name, err)
		}
		if err := run(time.Minute); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
		for b.fake.AbortRestart() {
		}
	}
}

func TestMuteForAWhile(t *testing.T) {
	b, s, fault := ill(t)
	fault(0, "mute", "1")
	b.waitQuiet()
	began := time.Now()
	if _, err := s.BootTime(t.Context()); err != nil || time.Since(began) < time.Second/2 {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	fault(0, "mute", "3600")
	b.waitQuiet()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.BootTime(ctx); err == nil {
		t.Error("a mute guest answers")
	}
	b.faults.mu.Lock()
	b.faults.quiet = time.Time{} // the shell is tidied up
	b.faults.mu.Unlock()
}

// waitQuiet waits until the guest is mute.
func (b *bench) waitQuiet() {
	for quiet := false; !quiet; time.Sleep(10 * time.Millisecond) {
		b.faults.mu.Lock()
		quiet = time.Until(b.faults.quiet) > 0
		b.faults.mu.Unlock()
	}
}

func TestRebootFaults(t *testing.T) {
	b, _, fault := ill(t)
	shutdown := func() {
		t.Helper()
		if exit := b.Run(t.Context(), "wbox", "shutdown.exe /r /t 0", strings.NewReader(""), io.Discard, io.Discard); exit != 0 {
			t.Errorf("exit code %d", exit)
		}
	}
	fault(0, "never-reboot")
	shutdown()
	if n := len(b.fake.Restarts()); n != 0 {
		t.Errorf("it restarted %d times", n)
	}
	fault(0, "reboot-twice")
	shutdown()
	for range 2 { // the second time nothing is arranged any more
		if err := b.Boot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(b.fake.Restarts()); n != 2 {
		t.Errorf("it restarted %d times, want twice and no more", n)
	}
}

func TestFaultsRefuse(t *testing.T) {
	b, _, fault := ill(t)
	for _, words := range [][]string{{}, {"garbage", "x"}, {"nosuch"}, {"a", "1", "2"}, {"clock", "5"}} { // the fake machine has no clock to set
		fault(1, words...)
	}
	var out bytes.Buffer
	if exit := b.Run(t.Context(), "wbox", "wbox-standin.exe fault garbage", strings.NewReader(""), &out, &out); exit != 0 || strings.TrimSpace(out.String()) != "true" {
		t.Errorf("%d, %q", exit, &out)
	}
}

package qemu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
)

func TestProbeTriesTheAccelerator(t *testing.T) {
	for mode, c := range map[string]struct {
		accel  hypervisor.Accelerator
		hyperV bool
		note   []string
		starts int
	}{
		"boots":     {hypervisor.KVM, true, nil, 1},
		"no-hyperv": {hypervisor.KVM, false, []string{"without the Hyper-V interface", "VP_INDEX"}, 2},
		"refuses":   {hypervisor.Emulation, false, []string{"KVM is there but does not run guests", "this will not do"}, 2},
		"hangs":     {hypervisor.Emulation, false, []string{"KVM is there", "hangs", "within 2s"}, 1},
		"mute":      {hypervisor.Emulation, false, []string{"KVM is there", "within 2s"}, 1},
		"pauses":    {hypervisor.Emulation, false, []string{"internal-error", "KVM internal error. Suberror: 1"}, 1},
		"guest-off": {hypervisor.Emulation, false, []string{"switched itself off"}, 1},
	} {
		t.Run(mode, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			d := newFake(t, mode)
			if strings.Contains(strings.Join(c.note, ""), "2s") {
				d.opts.TrialTimeout = 2 * time.Second
			}
			f, err := d.Probe(t.Context())
			if err != nil || f.Accelerator != c.accel || f.Version != "7.2.22" {
				t.Fatalf("got %+v, %v", f, err)
			}
			for _, words := range c.note {
				if !strings.Contains(f.AcceleratorNote, words) {
					t.Errorf("the note lacks %q: %s", words, f.AcceleratorNote)
				}
			}
			if strings.Contains(f.AcceleratorNote, "\n") || (c.note == nil) != (f.AcceleratorNote == "") {
				t.Errorf("note: %q", f.AcceleratorNote)
			}
			if again, err := d.Probe(t.Context()); err != nil || again != f {
				t.Errorf("probed again: %+v, %v", again, err)
			}
			if accel, err := d.accel.get(t.Context(), nil); err != nil || accel.hyperV != c.hyperV {
				t.Errorf("the Hyper-V interface: %v, want %v (%v)", accel.hyperV, c.hyperV, err)
			}
			if n := started(); n != c.starts {
				t.Errorf("%d starts, want %d", n, c.starts)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
				t.Errorf("the trial has left %v (%v)", left, err)
			}
		})
	}
}

func TestProbeProblems(t *testing.T) {
	old := newFake(t, "old")
	missing := New(Options{Program: filepath.Join(t.TempDir(), "qemu-system-x86_64")})
	for word, d := range map[string]*Driver{"too old": old, "qemu-system-x86 ": missing} {
		_, err := d.Probe(t.Context())
		var p *fault.Problem
		if !errors.As(err, &p) || p.Class != fault.Host || !strings.Contains(err.Error(), word) || p.Fix == "" {
			t.Errorf("%s: got %v", word, err)
		}
	}
	if _, err := old.Probe(t.Context()); !strings.Contains(err.Error(), "6.1.1") || !strings.Contains(err.Error(), oldest) {
		t.Errorf("found and wanted versions are not both named: %v", err)
	}
}

func TestStartProblems(t *testing.T) {
	for mode, c := range map[string]struct {
		class fault.Class
		words string
	}{
		"refuses":     {fault.Failed, "this will not do"},
		"locked":      {fault.Busy, "another virtual machine uses it"},
		"no-memory":   {fault.Host, "512 MiB"},
		"ports-taken": {fault.Failed, "forwarding rule"},
		"mute":        {fault.Failed, "has not answered within 200ms"},
	} {
		t.Run(mode, func(t *testing.T) {
			d := newFake(t, mode)
			if mode == "mute" {
				d.opts.StartTimeout = 200 * time.Millisecond
			}
			cfg := fakeConfig(t)
			_, err := d.Start(t.Context(), cfg)
			if fault.ClassOf(err) != c.class || err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v (class %d)", err, fault.ClassOf(err))
			}
			if n := started(); mode == "ports-taken" && n != portAttempts {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

func TestStartTakesAnotherPort(t *testing.T) {
	d := newFake(t, "one-port-taken")
	cfg := fakeConfig(t)
	cfg.Forwards = []hypervisor.Forward{{Name: "ssh", GuestPort: 22}}
	m, err := d.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Kill()
	if n := started(); n != 2 {
		t.Errorf("%d starts", n)
	}
}

func TestStartIsCancelled(t *testing.T) {
	d := newFake(t, "mute")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := d.Start(ctx, fakeConfig(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestHowMachinesEnd(t *testing.T) {
	for mode, c := range map[string]struct {
		class fault.Class
		words string
	}{
		"guest-off":  {0, ""},
		"sleeps":     {0, ""}, // and is woken
		"terminated": {fault.Failed, "from outside"},
		"aborts":     {fault.Failed, "exit code 134: qemu: assertion failed"},
		"pauses":     {fault.Failed, "paused the guest for good (internal-error): KVM internal error"},
		"disk-full":  {fault.Host, "is full"},
		"disk-error": {fault.Host, "Input/output error"},
	} {
		t.Run(mode, func(t *testing.T) {
			d := newFake(t, mode)
			m, err := d.Start(t.Context(), fakeConfig(t))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Kill()
			select {
			case <-m.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("the machine is still on")
			}
			err = m.Err()
			if fault.ClassOf(err) != c.class || (err == nil) != (c.words == "") ||
				err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v (class %d)", err, fault.ClassOf(err))
			}
		})
	}
}

func TestNVRAMIsTheMachinesOwn(t *testing.T) {
	d := newFake(t, "boots")
	cfg := fakeConfig(t)
	path := filepath.Join(cfg.Dir, nvramName)
	for _, want := range []string{"x", "given by the caller"} {
		m, err := d.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		m.Kill()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
		if err := os.WriteFile(path, []byte("given by the caller"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

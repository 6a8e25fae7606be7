package bake

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/guest"
	guestfake "github.com/wbox-dev/wbox/builder/guest/fake"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	hvfake "github.com/wbox-dev/wbox/builder/hypervisor/fake"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// bench is a fake machine with a fake guest in it.
type bench struct {
	t      *testing.T
	driver *hvfake.Driver
	guest  *guestfake.Guest
	host   Host
	work   *stage.Work
	runDir string
	seen   atomic.Int32 // the guest's boots that the machine has seen as resets
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, guest: guestfake.New(), runDir: t.TempDir()}
	b.guest.Scripts[readyScript] = guestfake.Always
	b.driver = hvfake.New(func(ctx context.Context, m *hvfake.Guest) { b.live(ctx, m) })
	b.host = Host{Driver: b.driver, Poll: time.Millisecond, CPUs: 1, MemoryMiB: 1024, Dial: func(ctx context.Context, _ netip.AddrPort, _ guest.Access, _ bool) (guest.Conn, error) {
		return b.guest.Dial(ctx)
	}}
	b.work = stage.NewWork(nil, nil, t.TempDir(), b.runDir, report.Discard)
	return b
}

// live ties the fake guest's power to the fake machine's.
func (b *bench) live(ctx context.Context, m *hvfake.Guest) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.guest.Off():
			m.PowerOff()
			return
		case <-tick.C:
			m.Work(1)
			if now := int32(b.guest.Boots()); b.seen.Swap(now) != now {
				m.Reset()
				return
			}
		}
	}
}

func (b *bench) start() *Running {
	b.t.Helper()
	disk := filepath.Join(b.t.TempDir(), "disk.qcow2")
	if err := os.WriteFile(disk, []byte("disk"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	r, err := b.host.Start(b.t.Context(), b.work, Boot{Name: "test", Disk: disk, TLS: true, Access: guest.Access{User: "u", Password: "secret-password"}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { r.Close() })
	return r
}

// scriptsRun lists what the guest was asked to run, without the readiness tests.
func (b *bench) scriptsRun() []string {
	var out []string
	for _, q := range b.guest.Requests() {
		if rest, ok := strings.CutPrefix(q, "run "); ok && !strings.HasPrefix(rest, readyScript) {
			out = append(out, rest)
		}
	}
	return out
}

func TestApply(t *testing.T) {
	for _, c := range []struct {
		name    string
		scripts map[string]guestfake.Script
		want    []string // what runs, in order
		boots   int
		err     string
	}{
		{"all there already", map[string]guestfake.Script{"10-a": guestfake.Always, "20-b": guestfake.Always},
			[]string{"10-a test", "20-b test"}, 1, ""},
		{"set without a reboot", map[string]guestfake.Script{"10-a": guestfake.Installed, "20-b": guestfake.Always},
			[]string{"10-a test", "10-a set", "10-a test", "20-b test"}, 1, ""},
		{"a reboot only where a script asks for one, and one for all", map[string]guestfake.Script{"10-a": guestfake.AfterReboot, "20-b": guestfake.AfterReboot},
			[]string{"10-a test", "10-a set", "20-b test", "20-b set", "10-a test", "20-b test"}, 2, ""},
		{"set that changes nothing", map[string]guestfake.Script{"10-a": func(guestfake.Run) guestfake.Reply {
			return guestfake.Reply{State: guest.Absent, Message: "still not"}
		}, "20-b": guestfake.Always}, nil, 1, "10-a: still not"},
		{"wants reboots for ever", map[string]guestfake.Script{"10-a": func(r guestfake.Run) guestfake.Reply {
			return guestfake.Reply{State: guest.Absent, Reboot: r.Mode == guest.Set, Message: "again"}
		}, "20-b": guestfake.Always}, nil, 3, "after 3 rounds"},
		{"fails", map[string]guestfake.Script{"10-a": guestfake.Always, "20-b": func(guestfake.Run) guestfake.Reply {
			return guestfake.Reply{State: guest.Failed, Message: "no such feature"}
		}}, nil, 1, "no such feature"},
		{"prints garbage", map[string]guestfake.Script{"10-a": guestfake.Always, "20-b": func(guestfake.Run) guestfake.Reply {
			return guestfake.Reply{Raw: "Segmentation fault"}
		}}, nil, 1, "20-b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			for n, s := range c.scripts {
				b.guest.Scripts[n] = s
			}
			r := b.start()
			applied, err := r.Apply(t.Context(), []Script{{Name: "10-a"}, {Name: "20-b"}})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || fault.ClassOf(err) != fault.Guest || !strings.Contains(err.Error(), b.runDir) {
					t.Errorf("error %v, want %q of class guest, with the run folder", err, c.err)
				}
			} else if err != nil {
				t.Fatal(err)
			} else if len(applied) != 2 || applied[0].Script != "10-a" || applied[0].Executed == "" {
				t.Errorf("applied %+v", applied)
			}
			if c.want != nil && !slices.Equal(b.scriptsRun(), c.want) {
				t.Errorf("ran %q, want %q", b.scriptsRun(), c.want)
			}
			if r.Boots() != c.boots {
				t.Errorf("%d boots, want %d", r.Boots(), c.boots)
			}
		})
	}
}

func TestProveSetsNothingAndTellsAllThatIsMissing(t *testing.T) {
	b := newBench(t)
	for _, n := range []string{"10-a", "20-b", "30-c"} {
		b.guest.Scripts[n] = guestfake.Installed
	}
	b.guest.Scripts["20-b"] = guestfake.Always
	_, err := b.start().Prove(t.Context(), []Script{{Name: "10-a"}, {Name: "20-b"}, {Name: "30-c"}})
	if err == nil || !strings.Contains(err.Error(), "10-a") || !strings.Contains(err.Error(), "30-c") {
		t.Errorf("error %v", err)
	}
	for _, q := range b.scriptsRun() {
		if strings.HasSuffix(q, " set") {
			t.Errorf("the proof ran %q", q)
		}
	}
}

func TestStopEndsTheMachine(t *testing.T) {
	b := newBench(t)
	r := b.start()
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !off(r.machine) {
		t.Error("the machine runs on")
	}
}

func TestAGuestThatTurnsItselfOffInTheMiddle(t *testing.T) {
	b := newBench(t)
	r := b.start()
	b.guest.Scripts["10-a"] = func(guestfake.Run) guestfake.Reply {
		r.machine.Kill()                   //nolint:errcheck // a fake
		time.Sleep(500 * time.Millisecond) // the answer comes too late
		return guestfake.Reply{State: guest.Present}
	}
	_, err := r.Apply(t.Context(), []Script{{Name: "10-a"}})
	if !errors.Is(err, guest.ErrGone) || fault.ClassOf(err) != fault.Guest {
		t.Errorf("error %v", err)
	}
}

func TestTheTranscriptHoldsNoPassword(t *testing.T) {
	b := newBench(t)
	b.guest.Scripts["10-a"] = func(guestfake.Run) guestfake.Reply {
		return guestfake.Reply{State: guest.Present, Message: "made with secret-password"}
	}
	if _, err := b.start().Apply(t.Context(), []Script{{Name: "10-a"}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(b.runDir, "transcript.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "10-a") || strings.Contains(string(text), "secret-password") {
		t.Errorf("transcript:\n%s", text)
	}
}

func TestCancelKillsTheMachine(t *testing.T) {
	b := newBench(t)
	b.host.Dial = func(context.Context, netip.AddrPort, guest.Access, bool) (guest.Conn, error) {
		return nil, errors.New("connection refused")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := b.host.Start(ctx, b.work, Boot{Name: "test", Disk: "/disk", TLS: true})
	if err == nil {
		t.Fatal("a guest that never answers was reached")
	}
	for _, m := range b.driver.Machines() {
		if !off(hypervisor.Machine(m)) {
			t.Error("the machine was left running")
		}
	}
}

func TestSeedHoldsWhatItsScriptsNeedAndNothingElse(t *testing.T) {
	got := scriptFiles([]Script{{Name: "50-prepare-node", Extra: []string{"Sync-WboxPayload.ps1"}}, {Name: "20-install-features"}})
	want := []string{"00-test-ready.ps1", "20-install-features.ps1", "50-prepare-node.ps1", "Invoke-WboxScript.ps1", "Sync-WboxPayload.ps1", "Wbox.psm1"}
	if !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	if d := ScriptDigests([]Script{{Name: "20-install-features"}}); len(d) != 4 {
		t.Errorf("digests of %d files, want 4: %v", len(d), d)
	}
	if err := (Seed{Scripts: []Script{{Name: "77-no-such"}}}).Write(t.Context(), filepath.Join(t.TempDir(), "s.iso")); err == nil {
		t.Error("a seed was made without its script")
	}
}

package bake

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/guest"
	guestfake "github.com/wbox-dev/wbox/builder/guest/fake"
)

// TestEndings has what belongs to one moment of a bake: its reboot, the end of
// its machine, a script of its own.
func TestEndings(t *testing.T) {
	reply := func(r guestfake.Reply) guestfake.Script { return func(guestfake.Run) guestfake.Reply { return r } }
	for name, c := range map[string]struct {
		setup func(w *ward)
		texts []string // of the error; none: it ends well
		limit time.Duration
	}{
		"reboots twice": {func(w *ward) {
			w.atReboot(func() { time.AfterFunc(20*time.Second, w.guest.Reboot) })
		}, nil, 2 * time.Minute},
		"reboots twice, the second time when all seems over": {func(w *ward) {
			w.guest.DownDials = 3
			w.atReboot(func() { time.AfterFunc(30*time.Second, w.guest.Reboot) })
			w.guest.Scripts["20-b"] = func(guestfake.Run) guestfake.Reply {
				time.Sleep(time.Minute)
				return guestfake.Reply{State: guest.Present}
			}
		}, nil, 5 * time.Minute},
		"comes back just before the deadline": {func(w *ward) { w.deaf(30*time.Minute - 3*time.Second) }, nil, 30 * time.Minute},
		"comes back just after it": {func(w *ward) { w.deaf(30*time.Minute + 3*time.Second) },
			[]string{"rebooting: the guest has not rebooted", "limit 30m0s", "connection refused"}, 30 * time.Minute},
		"never reboots":    {func(w *ward) { w.guest.IgnoreReboot = true }, []string{"rebooting: the guest has not rebooted", "it still runs since"}, 30 * time.Minute},
		"reboots too late": {func(w *ward) { w.guest.IgnoreReboot = true; time.AfterFunc(31*time.Minute, w.guest.Reboot) }, []string{"the guest has not rebooted"}, 30 * time.Minute},
		"reboots late":     {func(w *ward) { w.guest.IgnoreReboot = true; time.AfterFunc(29*time.Minute, w.guest.Reboot) }, nil, 30 * time.Minute},
		"is never quiet": {func(w *ward) {
			w.guest.Scripts[readyScript] = reply(guestfake.Reply{State: guest.Absent, Message: "servicing is at work"})
		},
			[]string{"up but not ready", "limit 15m0s", "servicing is at work"}, 15 * time.Minute},
		"has no room on its disk": {func(w *ward) {
			w.guest.Scripts["20-b"] = func(r guestfake.Run) guestfake.Reply {
				if r.Mode == guest.Test {
					return guestfake.Reply{State: guest.Absent}
				}
				return guestfake.Reply{State: guest.Failed, Message: "There is not enough space on the disk."}
			}
		}, []string{"running 20-b (set): There is not enough space on the disk. (exit code 1)"}, time.Minute},
		"does not turn off": {func(w *ward) { w.guest.IgnoreShutdown = true }, []string{"waiting for the guest to turn off", "limit 10m0s"}, 10 * time.Minute},
		"seals itself":      {func(w *ward) { w.sealing(true) }, nil, time.Minute},
		"does not turn off at the sealing": {func(w *ward) { w.sealing(false) },
			[]string{"waiting for the guest to turn off", "limit 10m0s", `answered "run 20-b set"`}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWard(t)
				c.setup(w)
				err, took := w.bakes(dir, true)
				if (err == nil) != (c.texts == nil) {
					t.Fatalf("it ended with %v", err)
				}
				if err != nil {
					w.explained(err, dir, c.texts...)
				}
				if took > c.limit+10*time.Second {
					t.Errorf("it took %v, want at most %v: %v", took, c.limit, err)
				}
			})
		})
	}
}

// atReboot calls f when the guest is asked to reboot.
func (w *ward) atReboot(f func()) {
	w.guest.Interfere = func(_ context.Context, request string, _ io.Writer) error {
		if strings.HasPrefix(request, "shutdown.exe /r") {
			f()
		}
		return nil
	}
}

// deaf makes the guest refuse connections for so long after its reboot.
func (w *ward) deaf(d time.Duration) {
	var until time.Time
	dial := w.layer.Host.Dial
	w.atReboot(func() { until = time.Now().Add(d) })
	w.layer.Host.Dial = func(ctx context.Context, to netip.AddrPort, a guest.Access, tls bool) (guest.Conn, error) {
		if time.Now().Before(until) {
			return nil, errors.New("connection refused")
		}
		return dial(ctx, to, a, tls)
	}
}

// sealing makes the layer one that ends with the guest turning itself off, if it does.
func (w *ward) sealing(turnsOff bool) {
	w.layer.Sealing = true
	w.guest.Scripts["20-b"] = func(guestfake.Run) guestfake.Reply {
		if turnsOff {
			time.AfterFunc(5*time.Second, w.guest.TurnOff)
		}
		return guestfake.Reply{State: guest.Present}
	}
}

// What the host did to a guest is not the guest's failure.
func TestTheHostsFailuresAreNotTheGuests(t *testing.T) {
	full := &fault.Problem{Class: fault.Host, Field: "disk", Value: "d.qcow2", Why: "the file system that holds it is full", Fix: "make room there"}
	for name, c := range map[string]struct {
		why   error
		class fault.Class
	}{
		"a full disk":            {full, fault.Host},
		"a hypervisor that died": {errors.New("running the machine: qemu: signal: killed"), fault.Failed},
	} {
		for _, request := range []string{"run 20-b set", "shutdown.exe /r", "shutdown.exe /s", "run " + readyScript} {
			t.Run(name+" at "+request, func(t *testing.T) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					w := newWard(t)
					w.guest.Interfere = func(_ context.Context, r string, _ io.Writer) error {
						if strings.HasPrefix(r, request) {
							w.driver.Machines()[0].Crash(c.why)
							return guestfake.ErrConnection()
						}
						return nil
					}
					err, took := w.bakes(dir, true)
					if fault.ClassOf(err) != c.class || !errors.Is(err, c.why) || took > 5*time.Second {
						t.Errorf("after %v: class %d, %v", took, fault.ClassOf(err), err)
					}
				})
			})
		}
	}
}

// A proof does not get over a guest that reboots by itself.
func TestAProofIsStrict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.guest.DownDials = 3
		r := w.starts(t)
		w.guest.Interfere = func(_ context.Context, request string, _ io.Writer) error {
			if request == "run 20-b test" {
				w.guest.Interfere = nil
				w.guest.Reboot()
				return guestfake.ErrConnection()
			}
			return nil
		}
		_, err := r.Prove(t.Context(), []Script{{Name: "20-b"}})
		if err == nil || !strings.Contains(err.Error(), "rebooted by itself") {
			t.Errorf("got %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

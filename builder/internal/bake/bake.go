// Package bake is what a VM layer does: it boots an overlay of its parent's
// disk with a seed CD, lets guest scripts test and set their state, reboots
// where a script asked for it, proves the end state and shuts down cleanly. The
// host owns every reboot and every deadline. It combines the capabilities
// hypervisor, guest, iso and disk; it must not import spec or a stage.
package bake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/wbox-dev/wbox/builder/disk"
	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/wait"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Names of the ports that lead into a guest.
const (
	portHTTPS = "winrm-https" // 5986, the bake's own way in
	portHTTP  = "winrm-http"  // 5985, the finished box's
)

// Host is how a build runs its machines. Nothing of it is in a key.
type Host struct {
	Driver      hypervisor.Driver
	Accelerator hypervisor.Accelerator
	Version     string // the driver's own, for the record
	CPUs        int
	MemoryMiB   int
	Patience    int // deadlines are multiplied by it: 1 with acceleration, more under emulation
	Dial        Dialer
	Disk        *disk.Tool    // what makes the overlays
	Poll        time.Duration // between two looks of a wait; 0 = the guest package's default
	Limits      Limits        // Optional: other deadlines
	Keep        Keeper        // Optional: keeps machines whose guest failed
	// Clock is a rehearsal's clock, from which the guests' start too; nil: this
	// host's. It is for stand-ins: a Windows' clock is never moved.
	Clock func() time.Time
}

// Now is the time by which results are dated.
func (h Host) Now() time.Time {
	if h.Clock != nil {
		return h.Clock()
	}
	return time.Now()
}

// Dialer opens a connection to a guest's WinRM port. tls says which of the two
// it is; with it, only the certificate of access is taken.
type Dialer func(ctx context.Context, to netip.AddrPort, access guest.Access, tls bool) (guest.Conn, error)

// Boot is one start of a machine within a stage.
type Boot struct {
	Name       string // of the machine, for logs
	Disk       string // opened read-write
	Media      []string
	BootMedia  bool
	Access     guest.Access
	TLS        bool          // the way in: HTTPS with the bake's certificate, or the box's HTTP
	Services   []string      // that should run once it is up
	FirstWait  time.Duration // until the first contact; 0 = a boot's
	PressEnter bool          // a boot medium asks for a key
}

// secrets are the texts that no log may hold. The box's own password is known
// to the whole world and is none.
func (b Boot) secrets() []string {
	if !b.TLS {
		return nil
	}
	return []string{b.Access.Password, b.Access.PFXPassword}
}

// Running is a machine whose guest can be talked to.
type Running struct {
	Session *guest.Session
	host    Host
	machine hypervisor.Machine
	work    *stage.Work
	boots   int
	closers []io.Closer
	boot    Boot
	signs   signs
	lost    int  // how often in a row the guest was lost and came back
	strict  bool // a reboot that nobody asked for is a failure
}

// Start boots a machine and waits until its guest is up and quiet. The caller
// ends it with End.
func (h Host) Start(ctx context.Context, w *stage.Work, b Boot) (_ *Running, err error) {
	dir := filepath.Join(w.Scratch, "vm")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &Running{host: h, work: w, boot: b, boots: 1}
	defer func() {
		if err != nil {
			err = r.End(ctx, r.explain(ctx, err))
		}
	}()
	w.Progress("starting the machine")
	var clock time.Time
	if h.Clock != nil {
		clock = h.Clock()
	}
	r.machine, err = h.Driver.Start(ctx, hypervisor.Config{
		Name: b.Name, Dir: dir, CPUs: h.CPUs, MemoryMiB: h.MemoryMiB, Firmware: hypervisor.UEFI,
		Disk: b.Disk, Media: b.Media, BootMedia: b.BootMedia, Accelerator: h.Accelerator,
		Forwards:  []hypervisor.Forward{{Name: portHTTPS, GuestPort: 5986}, {Name: portHTTP, GuestPort: 5985}},
		SerialLog: filepath.Join(w.RunDir, serialFile), Console: h.Keep != nil, Clock: clock,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the machine: %w", err)
	}
	r.closers = append(r.closers, closerFunc(r.machine.Kill))
	r.watch()
	if b.PressEnter {
		stopKeys := r.pressEnter(ctx)
		defer stopKeys()
	}
	return r, r.connect(ctx)
}

// connect waits for the first contact and then for readiness.
func (r *Running) connect(ctx context.Context) error {
	transcript, err := os.OpenFile(filepath.Join(r.work.RunDir, transcriptFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	r.closers = append(r.closers, transcript)
	wait := r.boot.FirstWait
	if wait == 0 {
		wait = r.host.limits().Boot
	}
	r.work.Progress("waiting for the guest")
	r.Session, err = guest.Open(ctx, guest.Options{
		Dial: r.dial, Transcript: transcript, Liveness: r.machine.Activity, Gone: r.machine.Done(),
		Interval: r.host.Poll, Resets: r.machine.Resets, Secrets: r.boot.secrets(),
		Deadline: r.host.deadline(wait), QuietLimit: r.host.deadline(r.host.limits().Quiet),
	})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, r.Session)
	r.work.Progress("waiting until the guest is quiet")
	return r.Session.WaitReady(ctx, r.host.deadline(r.host.limits().Boot))
}

func (r *Running) dial(ctx context.Context) (guest.Conn, error) {
	name := portHTTP
	if r.boot.TLS {
		name = portHTTPS
	}
	to, err := r.machine.Endpoint(name)
	if err != nil {
		return nil, err
	}
	return r.host.Dial(ctx, to, r.boot.Access, r.boot.TLS)
}

// pressEnter answers "Press any key to boot from CD", which real media ask for
// some seconds; the key does nothing elsewhere.
func (r *Running) pressEnter(ctx context.Context) (stop func()) {
	k, ok := r.machine.(hypervisor.KeySender)
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.machine.Done():
				return
			case <-tick.C:
				k.SendKeys(ctx, "ret") //nolint:errcheck // the next press follows in a second
			}
		}
	}()
	return cancel
}

// Boots returns how often the guest has been booted, as far as the host knows.
func (r *Running) Boots() int { return r.boots }

// Stop shuts the guest down and waits until the machine is off.
func (r *Running) Stop(ctx context.Context) error {
	r.work.Progress("shutting down")
	if err := r.Session.Shutdown(ctx); err != nil {
		return r.explain(ctx, fmt.Errorf("shutting down: %w", err))
	}
	again, cancel := context.WithCancel(ctx)
	defer cancel()
	go r.insist(again)
	return r.WaitOff(ctx)
}

// insist asks a guest that stays on to shut down, again and again: the request
// may have been lost, or it has rebooted instead.
func (r *Running) insist(ctx context.Context) {
	tick := time.NewTicker(guest.AskAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.Session.Shutdown(ctx) //nolint:errcheck // the machine tells whether it goes off
		}
	}
}

// WaitOff waits until the guest has turned its machine off by itself.
func (r *Running) WaitOff(ctx context.Context) error {
	err := wait.Closed(ctx, wait.Options{What: "the guest to turn off", Deadline: r.host.deadline(r.host.limits().Stop),
		Interval: r.host.Poll, Liveness: r.machine.Activity, LivenessName: "the machine"}, r.machine.Done())
	if err == nil {
		err = r.machine.Err()
	}
	if err != nil {
		return r.explain(ctx, err)
	}
	return nil
}

// Close ends the machine, whatever it does, and lets go of everything.
func (r *Running) Close() error {
	var errs []error
	for i := len(r.closers) - 1; i >= 0; i-- {
		errs = append(errs, r.closers[i].Close())
	}
	r.closers = nil
	return errors.Join(errs...)
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

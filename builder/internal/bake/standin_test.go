package bake_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/disk"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/guest/winrm"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/qemu"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
	"github.com/wbox-dev/wbox/builder/stages/windows"
	"github.com/wbox-dev/wbox/scripts/standin/media"
)

// clinic is a real QEMU with a real stand-in that misbehaves as asked.
type clinic struct {
	t      *testing.T
	dir    string
	host   bake.Host
	medium string
	base   string // the installed disk
	access guest.Access
}

// notes is what a stage told.
type notes struct {
	mu       sync.Mutex
	warnings []string
	kept     *report.Kept
}

func (n *notes) Emit(e report.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.Kind == report.Warning {
		n.warnings = append(n.warnings, e.Message)
	}
	if e.Kept != nil {
		n.kept = e.Kept
	}
}

func newClinic(t *testing.T) *clinic {
	t.Helper()
	if testing.Short() {
		t.Skip("boots a VM")
	}
	if missing := media.Missing(); len(missing) > 0 {
		t.Skipf("this machine lacks %s", strings.Join(missing, ", "))
	}
	driver := qemu.New(qemu.Options{})
	if _, err := driver.Probe(t.Context()); err != nil {
		t.Skipf("no QEMU: %v", err)
	}
	tool, err := disk.Find("")
	if err != nil {
		t.Skip(err)
	}
	medium, err := media.Cached(t.Context(), media.Options{Release: "2022"})
	if err != nil {
		t.Fatal(err)
	}
	return &clinic{t: t, dir: t.TempDir(), medium: medium, host: bake.Host{Driver: driver, Accelerator: hypervisor.Emulation,
		CPUs: 2, MemoryMiB: 2048, Patience: 4, Dial: dial, Disk: tool, Poll: time.Second}}
}

// dial notices a mute guest sooner than a bake would.
func dial(_ context.Context, to netip.AddrPort, access guest.Access, tls bool) (guest.Conn, error) {
	return winrm.Dial(winrm.Config{Addr: to, User: access.User, Password: guest.Secret(access.Password), TLS: tls, PinnedSHA256: access.Pin,
		OperationTimeout: 3 * time.Second, Grace: 5 * time.Second})
}

func (c *clinic) work(name string, in, out map[string]string, sink report.Sink) *stage.Work {
	c.t.Helper()
	for _, dir := range []string{"scratch-" + name, name} {
		if err := os.MkdirAll(filepath.Join(c.dir, dir), 0o700); err != nil {
			c.t.Fatal(err)
		}
	}
	return stage.NewWork(in, out, filepath.Join(c.dir, "scratch-"+name), filepath.Join(c.dir, name), sink)
}

// install installs the stand-in, once for all boots.
func (c *clinic) install() {
	c.t.Helper()
	digest, _, err := cas.DigestFile(c.t.Context(), c.medium)
	if err != nil {
		c.t.Fatal(err)
	}
	s := windows.New(windows.Config{Release: "2022", ImageName: "Windows Server 2022 SERVERSTANDARDCORE", ISO: c.medium, ISODigest: digest, DiskGiB: 64}, c.host)
	out := map[string]string{}
	for _, o := range s.Outputs() {
		out[o.Name] = filepath.Join(c.dir, "base-"+o.Name)
	}
	c.base = out[bake.DiskOutput]
	w := c.work("install", map[string]string{"iso": c.medium}, out, report.Discard)
	if err := s.Run(c.t.Context(), w); err != nil {
		c.t.Fatal(err)
	}
	if c.access, err = guest.LoadAccess(out[bake.AccessOutput]); err != nil {
		c.t.Fatal(err)
	}
}

// scripts are what the boots bring about.
func scripts() []bake.Script { return []bake.Script{{Name: "40-prepare-cni", Params: struct{}{}}} }

// ill is one boot of the installed stand-in.
type ill struct {
	*clinic
	*bake.Running
	notes
	w  *stage.Work
	to netip.AddrPort
}

func (c *clinic) boot(t *testing.T, name string) *ill {
	t.Helper()
	here := *c
	here.t, c = t, &here
	overlay, seed := filepath.Join(c.dir, name+".qcow2"), filepath.Join(c.dir, name+".iso")
	if err := c.host.Disk.CreateOverlay(c.t.Context(), c.base, overlay); err != nil {
		c.t.Fatal(err)
	}
	if err := (bake.Seed{Scripts: scripts()}).Write(c.t.Context(), seed); err != nil {
		c.t.Fatal(err)
	}
	i := &ill{clinic: c}
	i.w = c.work(name, nil, nil, &i.notes)
	host := c.host
	host.Patience = 1
	host.Limits = bake.Limits{Boot: 3 * time.Minute, Reboot: 3 * time.Minute, Script: time.Minute, Quiet: 30 * time.Second, Gather: 10 * time.Second}
	host.Dial = func(ctx context.Context, to netip.AddrPort, access guest.Access, tls bool) (guest.Conn, error) {
		i.to = to
		return dial(ctx, to, access, tls)
	}
	host.Keep = func(<-chan struct{}) { i.lookInto() }
	var err error
	i.Running, err = host.Start(c.t.Context(), i.w, bake.Boot{Name: name, Disk: overlay, Media: []string{seed}, Access: c.access, TLS: true})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		i.Close() //nolint:errcheck // the test is over
		if c.t.Failed() {
			text, _ := os.ReadFile(filepath.Join(i.w.RunDir, "transcript.txt"))
			c.t.Logf("the end of the transcript of %s:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
	return i
}

// fault makes the guest misbehave.
func (i *ill) fault(words string) {
	i.t.Helper()
	c, err := dial(i.t.Context(), i.to, i.access, true)
	if err != nil {
		i.t.Fatal(err)
	}
	defer c.Close()
	var out strings.Builder
	if exit, err := c.Run(i.t.Context(), guest.Command{Line: "wbox-standin.exe fault " + words, Stdout: &out, Stderr: &out}); err != nil || exit != 0 {
		i.t.Fatalf("fault %s: exit code %d, %v: %s", words, exit, err, out.String())
	}
}

// fails lets the scripts run with a fault and checks how that fails, and within
// what time.
func (i *ill) fails(words string, within time.Duration, texts ...string) {
	i.t.Helper()
	i.fault(words)
	i.failsNow(words, within, texts...) //nolint:errcheck // it is looked at there
}

func (i *ill) failsNow(what string, within time.Duration, texts ...string) error {
	i.t.Helper()
	began := time.Now()
	_, err := i.Apply(i.t.Context(), scripts())
	took := time.Since(began)
	var p *fault.Problem
	if !errors.As(err, &p) || p.Class != fault.Guest {
		i.t.Fatalf("%s: %v", what, err)
	}
	for _, text := range append(texts, "last sign of life: the guest answered", "look into "+i.w.RunDir, "serial.log") {
		if !strings.Contains(err.Error(), text) {
			i.t.Errorf("%s: %v lacks %q", what, err, text)
		}
	}
	if took > within+5*time.Second {
		i.t.Errorf("%s: it took %v, want at most %v", what, took, within)
	}
	i.t.Logf("%s: after %v: %v", what, took.Round(time.Second), err)
	return err
}

// survives lets the scripts run with a fault, and checks that a warning is all
// there is to see.
func (i *ill) survives(words, warning string) {
	i.t.Helper()
	i.fault(words)
	if strings.HasPrefix(words, "mute") {
		time.Sleep(1500 * time.Millisecond) // until it is
	}
	began := time.Now()
	if _, err := i.Apply(i.t.Context(), scripts()); err != nil {
		i.t.Fatalf("%s: %v", words, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if got := strings.Join(i.warnings, "; "); !strings.Contains(got, warning) {
		i.t.Errorf("%s: it warned %q, want %q", words, got, warning)
	}
	i.warnings = nil
	i.t.Logf("%s: survived in %v", words, time.Since(began).Round(time.Second))
}

// lookInto is what a user may do with a machine that is kept: see its screen.
func (i *ill) lookInto() {
	i.mu.Lock()
	k := i.kept
	i.mu.Unlock()
	if k == nil || !strings.HasPrefix(k.Console, "vnc://127.0.0.1:") {
		i.t.Errorf("kept: %+v", k)
		return
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(i.t.Context(), "tcp", strings.TrimPrefix(k.Console, "vnc://"))
	if err != nil {
		i.t.Error(err)
		return
	}
	defer conn.Close()
	hello := make([]byte, 4)
	if _, err := io.ReadFull(conn, hello); err != nil || string(hello) != "RFB " { // RFC 6143, 7.1.1
		i.t.Errorf("the console says %q, %v", hello, err)
	}
	if text, err := os.ReadFile(k.Secrets); err != nil || !strings.Contains(string(text), i.access.Password) {
		i.t.Errorf("the passwords: %v", err)
	}
}

// TestStandInMisbehaves has a real guest under a real QEMU misbehave: the same
// bake code, WinRM and machine as in a build.
func TestStandInMisbehaves(t *testing.T) {
	c := newClinic(t)
	began := time.Now()
	step := func(what string) { t.Logf("%s at %v", what, time.Since(began).Round(time.Second)) }
	c.install()
	step("installed")
	t.Run("much", func(t *testing.T) {
		t.Parallel()
		i := c.boot(t, "first")
		step("booted")
		i.errorsAndLosses()
		step("errors and losses")
		i.rebootsTwice()
		step("rebooted twice")
		i.fallsAsleep()
		step("slept")
	})
	t.Run("turns itself off", func(t *testing.T) {
		t.Parallel()
		i := c.boot(t, "second")
		i.fails("off", 15*time.Second, "the machine is off", "no screenshot")
		step("turned off")
	})
}

// errorsAndLosses are what a script's end, or the lack of it, tells.
func (i *ill) errorsAndLosses() {
	i.t.Helper()
	i.fails("garbage", 0, "running 40-prepare-cni (test)", "is no result line", "screen.png", "guest-logs")
	i.fails("half", 0, "is no result line", "unexpected EOF")
	i.fault("disk-full")
	i.failsNow("disk-full", 0, "running 40-prepare-cni (set)", "no space left on device") //nolint:errcheck // it is looked at there
	i.fault("disk-free")
	i.survives("drop", "the guest did not answer for a while and is back")
	i.survives("mute 10", "the guest did not answer for a while and is back")
	i.fault("never-reboot")
	if err := i.Session.Reboot(i.t.Context(), 6*time.Second); !errors.Is(err, guest.ErrNeverRebooted) || !strings.Contains(err.Error(), "it still runs since") {
		i.t.Errorf("never-reboot: %v", err)
	}
}

// rebootsTwice has the clock set, and another reboot follow the one that was
// asked for, while scripts run.
func (i *ill) rebootsTwice() {
	i.t.Helper()
	i.fault("clock 34560000") // 400 days
	i.fault("reboot-twice")
	if err := i.Reboot(i.t.Context()); err != nil {
		i.t.Fatalf("reboot-twice: %v", err)
	}
	for boots := 0; boots < 3; boots = i.boots() {
		if _, err := i.Apply(i.t.Context(), scripts()); err != nil {
			i.t.Fatalf("a script during the second reboot: %v", err)
		}
	}
}

// fallsAsleep ends with a machine that is kept.
func (i *ill) fallsAsleep() {
	i.t.Helper()
	i.fault("sleep")
	time.Sleep(2 * time.Second) // until it does
	err := i.failsNow("sleep", 60*time.Second, "nothing moves any more", "limit 30s", "screen.png")
	if err := i.End(i.t.Context(), err); !fault.Stands(err) {
		i.t.Errorf("a machine that was kept: %v", err)
	}
}

// boots is how often the guest has come up, as its serial log says.
func (i *ill) boots() int {
	text, err := os.ReadFile(filepath.Join(i.w.RunDir, "serial.log"))
	if err != nil {
		i.t.Fatal(err)
	}
	return strings.Count(string(text), "WBOX-STANDIN: ready")
}

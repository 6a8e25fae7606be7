package windows

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	guestfake "github.com/wbox-dev/wbox/builder/guest/fake"
	hvfake "github.com/wbox-dev/wbox/builder/hypervisor/fake"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// lab is the stage over a fake machine with a fake guest in it, whose licence
// is what a test says.
type lab struct {
	*testing.T
	driver *hvfake.Driver
	clock  time.Time
	facts  map[string]any
	sets   int // of 14-check-licence

	mu     sync.Mutex
	warned []string
}

func newLab(t *testing.T) *lab {
	now := time.Date(2026, 12, 1, 16, 20, 0, 0, time.UTC)
	return &lab{T: t, clock: now, facts: map[string]any{"edition": "ServerDatacenterEval", "evaluation": true,
		"installed": now.Format(time.RFC3339), "now": now.Format(time.RFC3339), "licenseStatus": 2, "activation": ""}}
}

// install runs the stage and returns the record that it left.
func (l *lab) install(cfg Config) (licence.Record, error) {
	l.Helper()
	tool, err := disk.Find("")
	if err != nil {
		l.Skip("qemu-img is not installed")
	}
	g := guestfake.New()
	g.Scripts["14-check-licence"] = func(r guestfake.Run) guestfake.Reply {
		l.sets = r.Sets
		return guestfake.Reply{State: guest.Present, Facts: l.facts}
	}
	l.driver = hvfake.New(func(ctx context.Context, m *hvfake.Guest) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-g.Off():
				m.PowerOff()
				return
			case <-tick.C:
				m.Work(1)
			}
		}
	})
	host := bake.Host{Driver: l.driver, Disk: tool, Poll: time.Millisecond, CPUs: 1, MemoryMiB: 1024, Clock: func() time.Time { return l.clock },
		Dial: func(ctx context.Context, _ netip.AddrPort, _ guest.Access, _ bool) (guest.Conn, error) {
			return g.Dial(ctx)
		}}
	dir := l.TempDir()
	medium := filepath.Join(dir, "medium.iso")
	if err := os.WriteFile(medium, []byte("iso"), 0o644); err != nil {
		l.Fatal(err)
	}
	cfg.Release, cfg.ImageName, cfg.DiskGiB, cfg.ISO = "2022", "Windows Server 2022 SERVERDATACENTERCORE", 64, medium
	if cfg.ISODigest == "" {
		sum := sha256.Sum256([]byte("iso"))
		cfg.ISODigest = "sha256:" + hex.EncodeToString(sum[:])
	}
	out := map[string]string{}
	for _, o := range New(cfg, host).Outputs() {
		out[o.Name] = filepath.Join(dir, o.Name)
	}
	w := stage.NewWork(map[string]string{"iso": medium}, out, l.TempDir(), l.TempDir(), report.SinkFunc(func(e report.Event) {
		if e.Kind == report.Warning {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.warned = append(l.warned, e.Message)
		}
	}))
	if err := New(cfg, host).Run(l.Context(), w); err != nil {
		return licence.Record{}, err
	}
	data, err := os.ReadFile(out[LicenceOutput])
	if err != nil {
		l.Fatal(err)
	}
	r, err := licence.Parse(data)
	if err != nil {
		l.Fatal(err)
	}
	return r, nil
}

func TestTheRecordOfALicence(t *testing.T) {
	for _, c := range []struct {
		name   string
		cfg    Config
		facts  map[string]any
		text   string
		why    string
		warned string
	}{
		{"not tried", Config{Why: "--offline"}, nil,
			"evaluation, not activated: grace ends 2026-12-11, evaluation ends 2027-05-30", "not tried: --offline", ""},
		{"tried, and it works", Config{Activate: true}, map[string]any{"licenseStatus": 1, "activation": "activated", "gracePeriodRemaining": 259200},
			"evaluation, activated: evaluation ends 2027-05-30", "activated", ""},
		{"tried in vain", Config{Activate: true}, map[string]any{"activation": "not activated: no such host (0x80072ee7)"},
			"evaluation, not activated: grace ends 2026-12-11, evaluation ends 2027-05-30", "not activated: no such host (0x80072ee7)",
			"the evaluation could not be activated (not activated: no such host (0x80072ee7)): Windows shuts itself down from 2026-12-11 on"},
		{"of itself", Config{Why: "--activate never"}, map[string]any{"licenseStatus": 1}, "evaluation, activated: evaluation ends 2027-05-30", "Windows has activated itself", ""},
		{"volume", Config{}, map[string]any{"evaluation": false, "edition": "ServerDatacenter"}, "volume or retail: no clock", "", ""},
		{"the guest's clock is wrong", Config{Why: "--offline"}, map[string]any{"now": "2020-01-01T00:00:00Z"},
			"evaluation, not activated: grace ends 2026-12-11, evaluation ends 2027-05-30", "not tried: --offline", "the licence's clock is doubtful: the guest's clock said 2020-01-01 00:00 UTC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			for k, v := range c.facts {
				l.facts[k] = v
			}
			r, err := l.install(c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if r.String() != c.text || r.Activation != c.why {
				t.Errorf("%q, %q; want %q, %q", r, r.Activation, c.text, c.why)
			}
			if all := strings.Join(l.warned, "\n"); (all == "") != (c.warned == "") || !strings.HasPrefix(all, c.warned) {
				t.Errorf("warned %q, want %q", all, c.warned)
			}
			if m := l.driver.Machines(); len(m) != 1 || !m[0].Config.Clock.Equal(l.clock) {
				t.Errorf("%d machines, or one with another clock", len(m))
			}
		})
	}
}

func TestAMediumThatHasChanged(t *testing.T) {
	l := newLab(t)
	_, err := l.install(Config{ISODigest: "sha256:" + strings.Repeat("0", 64)})
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "has changed") || len(l.driver.Machines()) != 0 {
		t.Errorf("got %v, %d machines", err, len(l.driver.Machines()))
	}
}

func TestAGuestThatHidesItsLicence(t *testing.T) {
	l := newLab(t)
	delete(l.facts, "licenseStatus")
	if _, err := l.install(Config{}); err == nil || !strings.Contains(err.Error(), "licenseStatus is missing") {
		t.Errorf("got %v", err)
	}
}

// What decides how a licence is treated, and not which Windows it is, is in no key.
func TestFingerprint(t *testing.T) {
	fp := func(cfg Config) any { return New(cfg, bake.Host{}).Fingerprint().Params }
	if fp(Config{Release: "2022"}) != fp(Config{Release: "2022", Activate: true, Why: "x"}) {
		t.Error("whether activation is tried makes another Windows")
	}
	if fp(Config{Release: "2022", Generation: 1}) == fp(Config{Release: "2022", Generation: 2}) {
		t.Error("two generations have one key")
	}
}

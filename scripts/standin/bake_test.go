package standin

import (
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/iso"
)

// TestMedium looks at the medium as wbox looks at Microsoft's.
func TestMedium(t *testing.T) {
	l := newLab(t, "")
	m, err := iso.Inspect(t.Context(), l.medium)
	if err != nil {
		t.Fatal(err)
	}
	if m.StandIn == nil || m.StandIn.PowerShell != "" || !m.Evaluation() {
		t.Errorf("the medium says of itself %+v", m)
	}
	edition, err := m.Select("2022", iso.Core)
	if err != nil || !strings.HasSuffix(edition.Name, "SERVERDATACENTERCORE") {
		t.Errorf("the core edition is %+v, %v", edition, err)
	}
}

// TestBake goes the way of a box without PowerShell: install, a feature with its
// reboot, the node, sealing, and the box's own way in.
func TestBake(t *testing.T) {
	l := newLab(t, "")
	disk := l.disk("disk")
	seed := l.seed("seed", map[string]any{
		"20-install-features": map[string]any{"features": []string{"Containers"}},
		"90-generalize":       map[string]any{"account": "vagrant", "password": "vagrant", "bakeAccount": l.access.User},
	}, nil)

	m := l.start("install", disk, l.medium, seed)
	s := m.session(l.access.User, l.access.Password, true)
	if got := m.Resets(); got != 1 {
		t.Errorf("Setup reset the machine %d times, not once", got)
	}
	before, err := s.BootTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, "12-prepare-system", guest.Set, guest.Present)
	run(t, s, "12-prepare-system", guest.Test, guest.Present)
	if o := run(t, s, "20-install-features", guest.Set, guest.Absent); !o.Reboot {
		t.Error("a feature needs no reboot")
	}
	if err := s.Reboot(t.Context(), bootLimit); err != nil {
		t.Fatal(err)
	}
	m.cost("rebooted")
	if after, err := s.BootTime(t.Context()); err != nil || !after.After(before) {
		t.Errorf("booted at %v, before at %v: %v", after, before, err)
	}
	run(t, s, "20-install-features", guest.Test, guest.Present)
	run(t, s, "50-prepare-node", guest.Set, guest.Present)
	if data, err := s.ReadFile(t.Context(), `c:\WINDOWS\panther\Unattend.xml`, 1<<20); err != nil || !strings.Contains(string(data), "unattend") {
		t.Errorf("the answer file, under its name in other letters: %d bytes, %v", len(data), err)
	}
	run(t, s, "90-generalize", guest.Set, guest.Present)
	m.waitOff()
	m.cost("sealed")

	// The next seed is attached as the only CD, the box has its own account.
	m = l.start("box", disk, l.seed("proof", nil, nil))
	s = m.session("vagrant", "vagrant", false)
	if data, err := s.ReadFile(t.Context(), `C:\Windows\Panther\unattend.xml`, 1<<20); err != nil || len(data) > 0 {
		t.Errorf("the answer file is still there: %d bytes, %v", len(data), err)
	}
	if err := m.PowerDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.waitOff()
	m.cost("powered down")
}

func run(t *testing.T, s *guest.Session, script string, mode guest.Mode, want guest.State) guest.Outcome {
	t.Helper()
	o, err := s.RunScript(t.Context(), script, mode, 10*time.Minute)
	if err != nil || o.State != want {
		t.Fatalf("%s %s: %+v, %v", script, mode, o, err)
	}
	return o
}

// TestSetupFails shows that a wrong answer file stops the stand-in, with the
// reason on the serial port.
func TestSetupFails(t *testing.T) {
	l := newLab(t, "")
	seed := l.seed("seed", nil, func(answer string) string {
		return strings.Replace(answer, "SERVERSTANDARDCORE", "SERVERNOTHING", 1)
	})
	m := l.start("install", l.disk("disk"), l.medium, seed)
	m.waitLog(`setup failed: install.wim has no image for /IMAGE/NAME "Windows Server 2022 SERVERNOTHING"`)
}

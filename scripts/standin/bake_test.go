package standin

import (
	"os"
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

// TestBake goes the way of a box on a medium without PowerShell.
func TestBake(t *testing.T) { bake(t, "", "stand-in") }

// TestBakePowerShell goes the same way with the real guest scripts.
func TestBakePowerShell(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a VM")
	}
	powershell := os.Getenv("WBOX_PWSH")
	if powershell == "" {
		t.Skip("WBOX_PWSH names no PowerShell: guest scripts are not executed")
	}
	bake(t, powershell, "")
}

// bake installs, brings the layers' states about, seals, puts a payload onto the
// disk and proves it over the box's own way in. executed is what results say of
// who executed them.
func bake(t *testing.T, powershell, executed string) {
	l := newLab(t, powershell)
	disk := l.disk("disk")
	payload := l.payload()
	layers := []string{"30-install-runtime", "40-prepare-cni", "50-prepare-node"}
	parameters := map[string]any{
		"20-install-features": map[string]any{"features": []string{"Containers"}},
		"30-install-runtime":  map[string]any{"sandboxImage": "registry.k8s.io/pause:3.10"},
		"40-prepare-cni":      map[string]any{"cni": "calico"},
		"50-prepare-node":     map[string]any{"minor": 37, "kubeletArgs": []string{"--windows-service"}, "featureOverrides": []any{}},
		"90-generalize":       map[string]any{"account": "vagrant", "password": "vagrant", "bakeAccount": l.access.User, "sealDelaySeconds": 5},
		"99-prove-payload":    map[string]any{"files": payload},
	}
	r := &runner{t: t, executed: executed}

	m := l.start("install", disk, l.medium, l.seed("seed", parameters, nil))
	r.s = m.session(l.access.User, l.access.Password, true)
	if got := m.Resets(); got != 1 {
		t.Errorf("Setup reset the machine %d times, not once", got)
	}
	before, err := r.s.BootTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.run("00-test-ready", guest.Test, guest.Present)
	r.run("12-prepare-system", guest.Set, guest.Present)
	r.run("12-prepare-system", guest.Test, guest.Present)
	if o := r.run("20-install-features", guest.Set, guest.Absent); !o.Reboot {
		t.Error("a feature needs no reboot")
	}
	r.run("00-test-ready", guest.Test, guest.Absent)
	if err := r.s.Reboot(t.Context(), bootLimit); err != nil {
		t.Fatal(err)
	}
	m.cost("rebooted")
	if after, err := r.s.BootTime(t.Context()); err != nil || !after.After(before) {
		t.Errorf("booted at %v, before at %v: %v", after, before, err)
	}
	r.run("20-install-features", guest.Test, guest.Present)
	for _, layer := range layers {
		r.run(layer, guest.Test, guest.Absent)
		r.run(layer, guest.Set, guest.Present)
		r.run(layer, guest.Test, guest.Present)
	}
	if data, err := r.s.ReadFile(t.Context(), `c:\WINDOWS\panther\Unattend.xml`, 1<<20); err != nil || !strings.Contains(string(data), "unattend") {
		t.Errorf("the answer file, under its name in other letters: %d bytes, %v", len(data), err)
	}
	m.cost("set up")
	r.run("90-generalize", guest.Set, guest.Present)
	m.waitOff()

	box := l.overlay(disk, payload)
	m = l.start("box", box, l.seed("proof", parameters, nil))
	r.s = m.session("vagrant", "vagrant", false)
	for _, script := range append(layers, "20-install-features", "90-generalize", "99-prove-payload") {
		r.run(script, guest.Test, guest.Present)
	}
	if err := m.PowerDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.cost("proven")
	m.waitOff()
}

// runner runs guest scripts and checks what they say.
type runner struct {
	t        *testing.T
	s        *guest.Session
	executed string
}

func (r *runner) run(script string, mode guest.Mode, want guest.State) guest.Outcome {
	r.t.Helper()
	o, err := r.s.RunScript(r.t.Context(), script, mode, 10*time.Minute)
	if err != nil || o.State != want || o.Executed != r.executed {
		r.t.Fatalf("%s %s: %+v, %v", script, mode, o, err)
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

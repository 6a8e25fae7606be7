package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/fake"
	"github.com/wbox-dev/wbox/builder/internal/wine"
)

// inspected is a driver that tells its parts.
type inspected struct {
	*fake.Driver
	parts []hypervisor.Part
}

func (i inspected) Parts(context.Context) []hypervisor.Part { return i.parts }

// tools are programs that a test says are there, and what they print.
func tools(have map[string]string) Tools {
	return Tools{
		Look: func(p string) (string, error) {
			if _, ok := have[p]; !ok {
				return "", &fault.Problem{Class: fault.Host, Field: "program", Value: p, Why: "is not there", Fix: "install " + p}
			}
			return "/usr/bin/" + p, nil
		},
		Run: func(_ context.Context, p string, args ...string) (string, error) {
			out := have[strings.Join(append([]string{filepath.Base(p)}, args[:min(1, len(args))]...), " ")]
			if out == "" {
				out = have[filepath.Base(p)]
			}
			if out == "broken" {
				return "", errors.New("exit status 1")
			}
			return out, nil
		},
	}
}

func allTools() map[string]string {
	return map[string]string{"qemu-img": "x", "go": "go version go1.26.8 linux/amd64", "git": "git version 2.39.5", "wine": "wine-8.0",
		"vagrant": "Vagrant 2.3.4", "vagrant plugin": "vagrant-libvirt (0.11.2, system)\n  - Version Constraint: > 0\n"}
}

func goodDriver() inspected {
	d := fake.New(nil)
	d.Features = hypervisor.Features{Version: "9.2", Accelerator: hypervisor.KVM}
	return inspected{d, []hypervisor.Part{{Name: "QEMU", Found: "9.2.0"}, {Name: "UEFI firmware", Found: "/usr/share/OVMF_CODE.fd"}}}
}

func TestDoctor(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(o *DoctorOptions, have map[string]string)
		canBake bool
		want    []string // "check status part-of-detail-or-fix"
		windows string   // why Windows can or can't be baked
	}{
		{"all is well", func(*DoctorOptions, map[string]string) {}, true,
			[]string{"system ok linux/amd64", "QEMU ok 9.2.0", "acceleration ok kvm", "disk ok 500 GiB free", "memory ok 16 GiB of 16 GiB free",
				"go ok go1.26.8", "vagrant-libvirt ok 0.11.2", "wine ok wine-8.0"}, "with kvm"},
		{"no acceleration", func(o *DoctorOptions, _ map[string]string) {
			d := goodDriver()
			d.Features = hypervisor.Features{Accelerator: hypervisor.Emulation, AcceleratorNote: "KVM is there but does not run guests: it hangs"}
			o.Driver = d
		}, true, []string{"acceleration warn it hangs", "acceleration warn --allow-emulation"}, "only with --allow-emulation"},
		{"no firmware", func(o *DoctorOptions, _ map[string]string) {
			d := goodDriver()
			d.parts[1] = hypervisor.Part{Name: "UEFI firmware", Err: &fault.Problem{Class: fault.Host, Field: "UEFI firmware", Why: "is nowhere", Fix: "install ovmf"}}
			o.Driver = d
		}, false, []string{"QEMU ok 9.2.0", "UEFI firmware missing is nowhere", "UEFI firmware missing install ovmf", "acceleration missing "}, "not without: UEFI firmware"},
		{"driver fails", func(o *DoctorOptions, _ map[string]string) {
			d := goodDriver()
			d.ProbeErr = errors.New("it crashed")
			o.Driver = d
		}, false, []string{"acceleration missing it crashed"}, "not without: acceleration"},
		{"no qemu-img", func(_ *DoctorOptions, have map[string]string) { delete(have, "qemu-img") }, false,
			[]string{"qemu-img missing install qemu-img"}, "not without: qemu-img"},
		{"arm64", func(o *DoctorOptions, _ map[string]string) { o.GOARCH = "arm64" }, false,
			[]string{"system missing Windows nodes are amd64"}, "not without: system"},
		{"Windows", func(o *DoctorOptions, _ map[string]string) { o.GOOS = "windows" }, true, []string{"system warn WSL2"}, "with kvm"},
		{"disk for a stand-in only", func(o *DoctorOptions, _ map[string]string) { o.Capacity = capacityOf(5*gib, 16*gib) }, true,
			[]string{"disk warn 5.0 GiB free", "disk warn --store"}, "disk or memory are short"},
		{"disk full", func(o *DoctorOptions, _ map[string]string) { o.Capacity = capacityOf(mib, 16*gib) }, false,
			[]string{"disk missing wbox cache prune"}, "not without: disk"},
		{"little memory", func(o *DoctorOptions, _ map[string]string) { o.Capacity = capacityOf(500*gib, 3*gib) }, true,
			[]string{"memory warn --memory"}, "disk or memory are short"},
		{"less memory", func(o *DoctorOptions, _ map[string]string) { o.Capacity = capacityOf(500*gib, gib) }, false,
			[]string{"memory missing "}, "not without: memory"},
		{"memory and disk unknown", func(o *DoctorOptions, _ map[string]string) {
			unknown := errors.New("unknown")
			o.Capacity = Capacity{Disk: func(string) (int64, string, error) { return 0, "", unknown }, Memory: func() (int64, int64, error) { return 0, 0, unknown }}
		}, true, []string{"memory warn unknown", "disk warn unknown"}, "with kvm"},
		{"store is a file", func(o *DoctorOptions, _ map[string]string) { o.Store = "doctor_test.go" }, false,
			[]string{"store missing --store or WBOX_STORE"}, "not without: store"},
		{"nothing optional", func(_ *DoctorOptions, have map[string]string) {
			for _, p := range []string{"go", "git", "vagrant", "wine"} {
				delete(have, p)
			}
		}, true, []string{"go missing a folder of .exe files needs none", "git missing ", "vagrant missing install vagrant", "wine missing "}, "with kvm"},
		{"broken programs", func(_ *DoctorOptions, have map[string]string) {
			have["go"] = "broken"
			have["vagrant plugin"] = "broken"
		}, true, []string{"go warn does not work", "vagrant-libvirt warn does not list its plugins"}, "with kvm"},
		{"vagrant without the plugin", func(_ *DoctorOptions, have map[string]string) { have["vagrant plugin"] = "No plugins installed.\n" }, true,
			[]string{"vagrant-libvirt missing plugin install"}, "with kvm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			have := allTools()
			o := DoctorOptions{Store: t.TempDir(), Driver: goodDriver(), Capacity: capacityOf(500*gib, 16*gib), GOOS: "linux", GOARCH: "amd64"}
			c.change(&o, have)
			o.Tools = tools(have)
			d, err := Doctor(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if d.CanBake != c.canBake {
				t.Errorf("can bake: %v", d.CanBake)
			}
			if !strings.HasPrefix(d.Abilities[0].Why, c.windows) {
				t.Errorf("Windows: %q, want %q", d.Abilities[0].Why, c.windows)
			}
			checkSays(t, d, c.want)
		})
	}
}

func checkSays(t *testing.T, d *Diagnosis, want []string) {
	t.Helper()
	for _, w := range want {
		if !said(d.Checks, w) {
			t.Errorf("no check says %q:\n%+v", w, d.Checks)
		}
	}
	for _, k := range d.Checks {
		if k.Status != CheckOK && k.Fix == "" && k.Name != "memory" && k.Name != "disk" && k.Name != "acceleration" {
			t.Errorf("no fix: %+v", k)
		}
	}
}

func capacityOf(free, memory int64) Capacity {
	return Capacity{Disk: func(string) (int64, string, error) { return free, "v", nil }, Memory: func() (int64, int64, error) { return memory, memory, nil }}
}

// said looks for a check of a name and a status whose detail or fix has a part.
func said(checks []Check, want string) bool {
	for _, k := range checks {
		if rest, ok := strings.CutPrefix(want, fmt.Sprintf("%s %s ", k.Name, k.Status)); ok && strings.Contains(k.Detail+" "+k.Fix, rest) {
			return true
		}
	}
	return false
}

func TestDoctorInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := DoctorOptions{Store: t.TempDir(), Driver: goodDriver(), Tools: tools(allTools())}
	if _, err := Doctor(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Debian's wine64 is in no folder of PATH: doctor looks where builds look.
func TestDoctorFindsTheWineOfBuilds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows programs run there without")
	}
	own := filepath.Join(t.TempDir(), "some-wine")
	if err := os.WriteFile(own, []byte("#!/bin/sh\necho wine-8.0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "")
	t.Setenv(wine.Variable, own)
	if got, err := (Tools{}).look(wineProgram); err != nil || got != own {
		t.Errorf("got %q, %v", got, err)
	}
	t.Setenv(wine.Variable, "none")
	if got, err := (Tools{}).look(wineProgram); err == nil {
		t.Errorf("found %q", got)
	}
}

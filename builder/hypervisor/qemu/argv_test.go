package qemu

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/golden"
)

var update = flag.Bool("update", false, "write the golden files") //nolint:gochecknoglobals // the testing package's way

// server is the machine that a layer of Windows Server runs on.
func server() (hypervisor.Config, Host) {
	return hypervisor.Config{
			Name: "ws2022", Dir: "/run/vm", CPUs: 2, MemoryMiB: 4096, Firmware: hypervisor.UEFI,
			Disk: "/store/disk.qcow2", SerialLog: "/run/serial.log",
			Forwards: []hypervisor.Forward{{Name: "winrm-https", GuestPort: 5986}},
		}, Host{
			Accelerator: hypervisor.KVM, HyperV: true, Monitor: "fd=3",
			FirmwareCode: "/usr/share/OVMF/OVMF_CODE_4M.fd", NVRAM: "/run/vm/nvram.fd",
			Ports: map[string]int{"winrm-https": 40001},
		}
}

func TestArgv(t *testing.T) {
	for name, change := range map[string]func(*hypervisor.Config, *Host){
		"kvm": func(*hypervisor.Config, *Host) {},
		"kvm-without-hyperv": func(_ *hypervisor.Config, h *Host) {
			h.HyperV = false
		},
		"hvf": func(_ *hypervisor.Config, h *Host) { h.Accelerator = hypervisor.HVF },
		"tcg-install": func(c *hypervisor.Config, h *Host) {
			h.Accelerator = hypervisor.Emulation
			c.CPUs, c.BootMedia = 1, true
			c.Media = []string{"/iso/windows.iso", "/run/seed.iso"}
		},
		"bios-no-serial": func(c *hypervisor.Config, _ *Host) {
			c.Firmware, c.SerialLog = hypervisor.BIOS, ""
		},
		"media-not-booted": func(c *hypervisor.Config, _ *Host) {
			c.Media = []string{"/1.iso", "/2.iso", "/3.iso", "/4.iso", "/5.iso"}
		},
		"console": func(c *hypervisor.Config, h *Host) {
			c.Console, h.Console = true, "/run/vm/console.secret"
		},
		"no-forward": func(c *hypervisor.Config, _ *Host) { c.Forwards = nil },
		"two-forwards-windows-host": func(c *hypervisor.Config, h *Host) {
			c.Forwards = append(c.Forwards, hypervisor.Forward{Name: "ssh", GuestPort: 22})
			h.Ports["ssh"] = 40002
			h.Accelerator, h.Monitor = hypervisor.Emulation, "host=127.0.0.1,port=40003"
			c.Disk, c.SerialLog = `C:\store\disk.qcow2`, `C:\run\serial.log`
		},
		"rehearsal": func(c *hypervisor.Config, _ *Host) {
			c.Clock = time.Date(2026, 12, 9, 17, 20, 0, 5, time.FixedZone("", 3600))
		},
		"commas": func(c *hypervisor.Config, h *Host) {
			c.Disk, c.SerialLog, c.Media = "/a,b/d.qcow2", "/a,b/s.log", []string{"/a,readonly=off,b.iso"}
			h.NVRAM, h.FirmwareCode = "/a,b/nvram.fd", "/a,b/code.fd"
		},
	} {
		cfg, host := server()
		change(&cfg, &host)
		golden.Compare(t, *update, "argv/"+name+".txt", []byte(lines(Argv(cfg, host))))
	}
}

// lines puts each option with its value on a line of its own.
func lines(argv []string) string {
	var b strings.Builder
	for i, a := range argv {
		switch {
		case i == 0:
		case strings.HasPrefix(a, "-"):
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
		b.WriteString(a)
	}
	return b.String() + "\n"
}

// TestArgvPromises holds what no golden file may be updated to lose.
func TestArgvPromises(t *testing.T) {
	cfg, host := server()
	for _, host.Accelerator = range []hypervisor.Accelerator{hypervisor.KVM, hypervisor.HVF, hypervisor.Emulation} {
		argv := Argv(cfg, host)
		for _, banned := range []string{"-no-shutdown", "-no-reboot", "-daemonize", "-snapshot"} {
			if slices.Contains(argv, banned) {
				t.Errorf("%s: %s is there", host.Accelerator, banned)
			}
		}
		for _, needed := range []string{"-nodefaults", "-no-user-config", "-S"} {
			if !slices.Contains(argv, needed) {
				t.Errorf("%s: %s is not there", host.Accelerator, needed)
			}
		}
		all := strings.Join(argv, " ")
		if strings.Count(all, "hostfwd=") != strings.Count(all, "hostfwd=tcp:127.0.0.1:") {
			t.Errorf("%s: a port is forwarded from elsewhere than 127.0.0.1: %s", host.Accelerator, all)
		}
		if strings.Contains(all, "hv-passthrough") || strings.Contains(all, "secboot") {
			t.Errorf("%s: %s", host.Accelerator, all)
		}
	}
}

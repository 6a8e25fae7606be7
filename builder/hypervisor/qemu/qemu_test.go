package qemu

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/drivertest"
	"github.com/wbox-dev/wbox/builder/internal/exec"
)

// needQEMU skips a test that boots a machine where that is not wanted or not
// possible.
func needQEMU(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("boots a VM")
	}
	for _, program := range []string{"qemu-system-x86_64", "qemu-img"} {
		if _, err := osexec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	if _, err := findFirmware(Options{}, "/"); err != nil {
		t.Skip("OVMF is not installed")
	}
}

// program returns the 16-bit code of a guest, which SeaBIOS loads from the
// disk's first sector. Each begins with mov dx,0x3f8; mov al,'A'; out dx,al
// (a letter to the serial port) and sti, so that hlt waits for the next tick of
// the timer, 18 a second.
func program(g drivertest.Guest) []byte {
	const (
		hello = "\xba\xf8\x03\xb0A\xee\xfb"
		sleep = "\xf4\xeb\xfd"                     // 1: hlt; jmp 1b
		off   = "\xba\x04\x06\xb8\x00\x20\xef"     // the sleep state S5 into ACPI's PM1 control register
		enter = "\xba\x02\x06\xb8\x00\x01\xef"     // the power button into PM1's enable register
		await = "\xf4\xba\x00\x06\xed\xf6\xc4\x01" // 1: hlt; the power button's bit of PM1's status register
	)
	return []byte(map[drivertest.Guest]string{
		drivertest.Idle:      hello + sleep,
		drivertest.Busy:      hello + "\xf4\xeb\xf6", // hlt, and back to the first instruction
		drivertest.PowersOff: hello + "\xf4\xf4" + off + sleep,
		drivertest.Resets:    hello + "\xf4\xba\xf9\x0c\xb0\x06\xee" + sleep,   // reset, by port 0xcf9
		drivertest.Obeys:     enter + hello + await + "\x74\xf6" + off + sleep, // jz 1b
	}[g])
}

// bootSector is a disk with a program, as large as AHCI wants it at least.
func bootSector(code []byte) []byte {
	disk := make([]byte, 1<<20)
	copy(disk, code)
	disk[510], disk[511] = 0x55, 0xaa
	return disk
}

// tinyGuest returns a machine under emulation that boots a boot sector in a
// fraction of a second.
func tinyGuest(t *testing.T, g drivertest.Guest) hypervisor.Config {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "disk.raw")
	if err := os.WriteFile(raw, bootSector(program(g)), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := hypervisor.Config{
		Name: string(g), Dir: dir, CPUs: 1, MemoryMiB: 512, Firmware: hypervisor.BIOS, Accelerator: hypervisor.Emulation,
		Disk: filepath.Join(dir, "disk.qcow2"), SerialLog: filepath.Join(dir, "serial.log"),
	}
	_, err := exec.Run(t.Context(), exec.Command{Program: "qemu-img", Args: []string{"convert", "-O", "qcow2", raw, cfg.Disk}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestConformance(t *testing.T) {
	needQEMU(t)
	drivertest.Run(t, func(*testing.T) hypervisor.Driver { return New(Options{}) }, drivertest.Options{
		Config: tinyGuest,
		Crash: func(t *testing.T, m hypervisor.Machine) {
			p, err := os.FindProcess(m.(*Machine).proc.Pid())
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		Gone: func(m hypervisor.Machine) bool { return !runs(m.(*Machine).proc.Pid()) },
	})
}

// runs says whether a process exists and is not a zombie. It knows on Linux only.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// TestTrialUnderEmulation proves the proof: where guests run, it says so.
func TestTrialUnderEmulation(t *testing.T) {
	needQEMU(t)
	d := New(Options{TrialTimeout: time.Minute})
	if err := d.trial(t.Context(), acceleration{name: hypervisor.Emulation}); err != nil {
		t.Error(err)
	}
}

func TestProbeOfThisHost(t *testing.T) {
	needQEMU(t)
	begin := time.Now()
	f, err := New(Options{}).Probe(t.Context())
	t.Logf("%+v after %v", f, time.Since(begin))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestEmulatedCPU checks with QEMU itself that the model can wholly be emulated.
func TestEmulatedCPU(t *testing.T) {
	needQEMU(t)
	cfg := tinyGuest(t, drivertest.Idle)
	m, err := New(Options{}).start(t.Context(), cfg, firmware{}, acceleration{name: hypervisor.Emulation})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Kill()
	var models []struct {
		Name        string   `json:"name"`
		Unavailable []string `json:"unavailable-features"`
	}
	if err := m.ask(t.Context(), "query-cpu-definitions", nil, &models); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, model := range models {
		if model.Name == emulatedCPU {
			found = true
			if len(model.Unavailable) > 0 {
				t.Errorf("the emulator lacks %v", model.Unavailable)
			}
		}
	}
	if !found {
		t.Errorf("QEMU knows no %s", emulatedCPU)
	}
	var expanded struct {
		Model struct {
			Props map[string]any `json:"props"`
		} `json:"model"`
	}
	err = m.ask(t.Context(), "query-cpu-model-expansion",
		map[string]any{"type": "full", "model": map[string]string{"name": emulatedCPU}}, &expanded)
	if err != nil {
		t.Fatal(err)
	}
	for _, feature := range []string{"cx16", "lahf-lm", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"} { // x86-64-v2
		if expanded.Model.Props[feature] != true {
			t.Errorf("%s lacks %s", emulatedCPU, feature)
		}
	}
}

// TestFullMachine starts the machine that Windows gets, with all its drives.
func TestFullMachine(t *testing.T) {
	needQEMU(t)
	cfg := tinyGuest(t, drivertest.Idle)
	cfg.Firmware, cfg.CPUs, cfg.BootMedia = hypervisor.UEFI, 2, true
	cfg.Dir = filepath.Join(t.TempDir(), strings.Repeat("long, ", 30)) // longer than a socket's address may be
	if err := os.Mkdir(cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.SerialLog = filepath.Join(cfg.Dir, "serial, first.log")
	for i := range maxMedia {
		cfg.Media = append(cfg.Media, touch(t, filepath.Join(cfg.Dir, fmt.Sprintf("medium,%d.iso", i))))
		if err := os.Truncate(cfg.Media[i], 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Forwards = []hypervisor.Forward{{Name: "winrm-https", GuestPort: 5986}}
	m, err := New(Options{}).Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if info, err := os.Stat(cfg.SerialLog); err == nil && info.Size() > 0 {
			break
		}
		select {
		case <-tick.C:
		case <-m.Done():
			t.Fatalf("it has ended: %v", m.Err())
		case <-ctx.Done():
			t.Fatal("the firmware does not start")
		}
	}
}

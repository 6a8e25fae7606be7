package qemu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
)

func TestParseVersion(t *testing.T) {
	for out, want := range map[string]string{
		"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright (c)": "7.2.22",
		"QEMU emulator version 9.0.50 (v9.0.0-1-gabc)":                                  "9.0.50",
		"QEMU emulator version 10.1.0":                                                  "10.1.0",
		"QEMU emulator version 6.2":                                                     "6.2.0",
		"":                                                                              "",
		"QEMU emulator":                                                                 "",
		"version 99999999999999999999.1":                                                "",
	} {
		got := ""
		v, err := parseVersion(out)
		if err == nil {
			got = v.String()
		}
		if got != want {
			t.Errorf("%.40q: got %q (%v), want %q", out, got, err, want)
		}
	}
}

func touch(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindFirmware(t *testing.T) {
	root := t.TempDir()
	problem := func(opts Options) *fault.Problem {
		t.Helper()
		var p *fault.Problem
		if _, err := findFirmware(opts, root); !errors.As(err, &p) || p.Class != fault.Host || p.Fix == "" {
			t.Fatalf("got %v, want a host problem", err)
		}
		return p
	}
	if p := problem(Options{}); !strings.Contains(p.Fix, "ovmf") {
		t.Errorf("the fix names no package: %v", p)
	}
	// Only half of the better one is there, and a build with Secure Boot, which is never taken.
	touch(t, filepath.Join(root, "usr/share/OVMF/OVMF_CODE_4M.fd"))
	touch(t, filepath.Join(root, "usr/share/OVMF/OVMF_CODE_4M.ms.fd"))
	touch(t, filepath.Join(root, "usr/share/OVMF/OVMF_VARS_4M.ms.fd"))
	problem(Options{})
	want := firmware{
		touch(t, filepath.Join(root, "usr/share/edk2/ovmf/OVMF_CODE.fd")),
		touch(t, filepath.Join(root, "usr/share/edk2/ovmf/OVMF_VARS.fd")),
	}
	if fw, err := findFirmware(Options{}, root); err != nil || fw != want {
		t.Errorf("got %v, %v; want %v", fw, err, want)
	}
	own := Options{FirmwareCode: want.code, FirmwareVars: filepath.Join(root, "missing.fd")}
	if p := problem(own); p.Value != own.FirmwareVars {
		t.Errorf("the wrong file is named: %v", p)
	}
	problem(Options{FirmwareCode: want.code})
}

func TestKVMProblem(t *testing.T) {
	dir := t.TempDir()
	d := New(Options{})
	d.kvmDevice = filepath.Join(dir, "missing")
	if why := d.kvmProblem(); !strings.Contains(why, "nested virtualization") {
		t.Errorf("a missing device: %q", why)
	}
	d.kvmDevice = touch(t, filepath.Join(dir, "kvm"))
	if why := d.kvmProblem(); why != "" {
		t.Errorf("a device that opens: %q", why)
	}
	t.Run("refused", func(t *testing.T) {
		if os.Geteuid() == 0 || runtime.GOOS == "windows" {
			t.Skip("root may open anything, and Windows has no KVM")
		}
		if err := os.Chmod(d.kvmDevice, 0); err != nil {
			t.Fatal(err)
		}
		if why := d.kvmProblem(); !strings.Contains(why, "usermod -aG kvm") {
			t.Errorf("a device that may not be opened: %q", why)
		}
	})
}

func TestAccelerationOfOtherHosts(t *testing.T) {
	for _, c := range []struct{ goos, goarch, word string }{
		{"linux", "arm64", "arm64"}, {"darwin", "arm64", "arm64"}, {"windows", "amd64", "WSL2"}, {"freebsd", "amd64", "freebsd"},
	} {
		d := New(Options{})
		d.goos, d.goarch = c.goos, c.goarch
		got, err := d.accelerate(t.Context())
		if err != nil || got.name != hypervisor.Emulation || !strings.Contains(got.note, c.word) {
			t.Errorf("%s/%s: %+v, %v", c.goos, c.goarch, got, err)
		}
	}
}

func TestOnce(t *testing.T) {
	o := newOnce[int]()
	asked := 0
	ctx, cancel := context.WithCancel(t.Context())
	_, err := o.get(ctx, func(context.Context) (int, error) {
		cancel()
		return 0, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for range 2 { // a cancelled question is asked again, a failed one is not
		_, err := o.get(t.Context(), func(context.Context) (int, error) {
			asked++
			return 0, errors.New("no such thing")
		})
		if err == nil || err.Error() != "no such thing" {
			t.Errorf("got %v", err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

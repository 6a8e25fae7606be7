package qemu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/hashicorp/go-version"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/exec"
)

// oldest is the oldest QEMU that the command line is written for: "hpet" as a
// property of the machine, and -smp that counts cores. It is Ubuntu 22.04's.
const oldest = "6.2"

// hostFacts are what this host has, apart from an accelerator.
type hostFacts struct {
	version  string
	firmware firmware
}

// firmware are the two halves of an OVMF build: the code, which all machines
// share, and the variables, of which each gets a copy.
type firmware struct{ code, vars string }

// inspect looks for QEMU and its firmware.
func (d *Driver) inspect(ctx context.Context) (hostFacts, error) {
	v, err := d.version(ctx)
	if err != nil {
		return hostFacts{}, err
	}
	fw, err := findFirmware(d.opts, "/")
	return hostFacts{v, fw}, err
}

// version asks QEMU for its version, and refuses one that is too old.
func (d *Driver) version(ctx context.Context) (string, error) {
	out, err := exec.Run(ctx, exec.Command{Program: d.opts.Program, Args: []string{"--version"}})
	if err != nil {
		return "", fmt.Errorf("asking QEMU for its version: %w", err)
	}
	v, err := parseVersion(string(out))
	if err != nil {
		return "", &fault.Problem{Class: fault.Host, Field: "program", Value: d.opts.Program,
			Why: err.Error(), Fix: "install QEMU " + oldest + " or newer"}
	}
	if v.LessThan(version.Must(version.NewVersion(oldest))) {
		return "", &fault.Problem{Class: fault.Host, Field: "QEMU", Value: v.String(),
			Why: "is too old", Fix: "install QEMU " + oldest + " or newer"}
	}
	return v.String(), nil
}

// parseVersion reads the answer to --version: "QEMU emulator version 7.2.22
// (Debian 1:7.2+dfsg-7)" or "QEMU emulator version 9.0.50 (v9.0.0-1-gabc)".
func parseVersion(out string) (*version.Version, error) {
	m := regexp.MustCompile(`version (\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)`).FindStringSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("it says no version: %.80q", out)
	}
	return version.NewVersion(m[1])
}

// firmwares lists where OVMF without Secure Boot is found, with a 4 MiB flash
// before the older 2 MiB one, whose variable store recent Windows can fill up.
// The code's path is followed by the variables'.
func firmwares() [][2]string {
	return [][2]string{
		{"usr/share/OVMF/OVMF_CODE_4M.fd", "usr/share/OVMF/OVMF_VARS_4M.fd"},                           // Debian 12, Ubuntu
		{"usr/share/edk2/x64/OVMF_CODE.4m.fd", "usr/share/edk2/x64/OVMF_VARS.4m.fd"},                   // Arch
		{"usr/share/edk2/ovmf/OVMF_CODE.fd", "usr/share/edk2/ovmf/OVMF_VARS.fd"},                       // Fedora, RHEL
		{"usr/share/qemu/ovmf-x86_64-4m-code.bin", "usr/share/qemu/ovmf-x86_64-4m-vars.bin"},           // openSUSE
		{"usr/share/OVMF/OVMF_CODE.fd", "usr/share/OVMF/OVMF_VARS.fd"},                                 // older Debian
		{"usr/share/edk2-ovmf/x64/OVMF_CODE.fd", "usr/share/edk2-ovmf/x64/OVMF_VARS.fd"},               // older Arch
		{"usr/local/share/qemu/edk2-x86_64-code.fd", "usr/local/share/qemu/edk2-i386-vars.fd"},         // Homebrew on Intel, built from source
		{"opt/homebrew/share/qemu/edk2-x86_64-code.fd", "opt/homebrew/share/qemu/edk2-i386-vars.fd"},   // Homebrew on Apple silicon
		{"usr/share/qemu/edk2-x86_64-code.fd", "usr/share/qemu/edk2-i386-vars.fd"},                     // Alpine and others: QEMU's own
		{"Program Files/qemu/share/edk2-x86_64-code.fd", "Program Files/qemu/share/edk2-i386-vars.fd"}, // Windows
	}
}

// findFirmware returns the firmware that opts name, else the first of the known
// places below root that has both halves.
func findFirmware(opts Options, root string) (firmware, error) {
	fix := "install it (on Debian and Ubuntu: sudo apt install --no-install-recommends ovmf)"
	if opts.FirmwareCode != "" || opts.FirmwareVars != "" {
		for _, path := range []string{opts.FirmwareCode, opts.FirmwareVars} {
			if !isFile(path) {
				return firmware{}, &fault.Problem{Class: fault.Host, Field: "UEFI firmware", Value: path,
					Why: "there is no such file", Fix: "name both the code file and the variables file, or none to have them found"}
			}
		}
		return firmware{opts.FirmwareCode, opts.FirmwareVars}, nil
	}
	for _, pair := range firmwares() {
		fw := firmware{filepath.Join(root, pair[0]), filepath.Join(root, pair[1])}
		if isFile(fw.code) && isFile(fw.vars) {
			return fw, nil
		}
	}
	return firmware{}, &fault.Problem{Class: fault.Host, Field: "UEFI firmware", Value: "OVMF",
		Why: "is in none of the places where distributions put it", Fix: fix}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

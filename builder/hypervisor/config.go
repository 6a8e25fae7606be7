package hypervisor

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Validate checks all that can be said about a Config without looking at files:
// every driver asks it first. The error joins everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(isLabel(c.Name), "name %q: want letters, digits and '-'", c.Name)
	check(filepath.IsAbs(c.Dir), "folder %q: want an absolute path", c.Dir)
	check(c.CPUs >= 1, "%d processors: want at least one", c.CPUs)
	check(c.MemoryMiB >= 512, "%d MiB of memory: want at least 512", c.MemoryMiB)
	switch c.Firmware {
	case "", UEFI, BIOS:
	default:
		check(false, "firmware %q: want %s or %s", c.Firmware, UEFI, BIOS)
	}
	switch c.Accelerator {
	case "", Auto, KVM, HVF, Emulation:
	default:
		check(false, "accelerator %q: want %s, %s, %s or %s", c.Accelerator, Auto, KVM, HVF, Emulation)
	}
	check(filepath.IsAbs(c.Disk), "disk %q: want an absolute path", c.Disk)
	for _, path := range c.Media {
		check(filepath.IsAbs(path), "medium %q: want an absolute path", path)
	}
	check(len(c.Media) > 0 || !c.BootMedia, "there is no medium to boot from")
	check(c.SerialLog == "" || filepath.IsAbs(c.SerialLog), "serial log %q: want an absolute path", c.SerialLog)
	seen := make(map[string]bool)
	for _, f := range c.Forwards {
		check(f.GuestPort > 0 && f.GuestPort <= 65535, "forward %q: there is no port %d", f.Name, f.GuestPort)
		check(f.Name != "" && !seen[f.Name], "forward %q: want a name of its own", f.Name)
		seen[f.Name] = true
	}
	return errors.Join(errs...)
}

// isLabel says whether s consists of ASCII letters, digits and '-', one or more.
func isLabel(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
	return s != "" && strings.Trim(s, allowed) == ""
}

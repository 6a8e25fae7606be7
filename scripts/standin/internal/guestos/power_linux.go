package guestos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Power is what becomes of the machine.
type Power int

// The two ends of a boot.
const (
	Off Power = iota
	Reboot
)

// Leave stops all other processes, writes everything to disk and turns the
// machine off or resets it. It returns only where that fails.
func Leave(what Power) error {
	unix.Kill(-1, unix.SIGKILL) //nolint:errcheck // nobody is left to kill
	unix.Sync()
	deadline := time.Now().Add(5 * time.Second)
	for {
		err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
		if err == nil || errors.Is(err, unix.EINVAL) || time.Now().After(deadline) {
			break
		}
		// Killed processes take a moment to let go of their files.
		unix.Poll(nil, 50) //nolint:errcheck // a short wait, nothing can be done about it
	}
	unix.Sync()
	how := unix.LINUX_REBOOT_CMD_POWER_OFF
	if what == Reboot {
		how = unix.LINUX_REBOOT_CMD_RESTART
	}
	return fmt.Errorf("leaving: %w", unix.Reboot(how))
}

// PowerButton calls pressed whenever the ACPI power button is pressed, until ctx
// ends.
func PowerButton(ctx context.Context, pressed func()) error {
	names, err := filepath.Glob("/sys/class/input/event*/device/name")
	if err != nil {
		return fmt.Errorf("finding the power button: %w", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil || strings.TrimSpace(string(data)) != "Power Button" {
			continue
		}
		event := filepath.Base(filepath.Dir(filepath.Dir(name)))
		file, err := os.Open("/dev/input/" + event)
		if err != nil {
			return fmt.Errorf("opening the power button: %w", err)
		}
		context.AfterFunc(ctx, func() { file.Close() })
		go watchKey(file, pressed)
		return nil
	}
	return errors.New("the machine has no power button")
}

// watchKey reads struct input_event of <linux/input.h>: two 64-bit times, type,
// code, value. KEY_POWER is 116; 1 is the press.
func watchKey(file *os.File, pressed func()) {
	const size, keyEvent, keyPower = 24, 1, 116
	b := make([]byte, size)
	for {
		if n, err := file.Read(b); err != nil || n != size {
			return
		}
		if binary.NativeEndian.Uint16(b[16:]) == keyEvent && binary.NativeEndian.Uint16(b[18:]) == keyPower && binary.NativeEndian.Uint32(b[20:]) == 1 {
			pressed()
		}
	}
}

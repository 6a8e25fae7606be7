package machine

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

var _ Faulty = (*Linux)(nil)

// SetClock sets the kernel's clock; the machine's own stays as it is.
func (m *Linux) SetClock(by time.Duration) error {
	to := unix.NsecToTimeval(time.Now().Add(by).UnixNano())
	if err := unix.Settimeofday(&to); err != nil {
		return fmt.Errorf("setting the clock: %w", err)
	}
	return nil
}

// Sleep suspends to idle: the kernel freezes everything and halts the processors.
func (m *Linux) Sleep() error {
	if err := os.WriteFile("/sys/power/state", []byte("freeze"), 0o644); err != nil {
		return fmt.Errorf("going to sleep: %w", err)
	}
	return nil
}

// Fill allocates pieces of the file, smaller and smaller ones. Nothing is
// written to them, so that this takes a moment only.
func (m *Linux) Fill(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("filling the disk: %w", err)
	}
	defer f.Close()
	var size int64
	for piece := int64(1 << 30); piece >= 4<<10; {
		switch err := unix.Fallocate(int(f.Fd()), 0, size, piece); {
		case err == nil:
			size += piece
		case errors.Is(err, unix.ENOSPC):
			piece /= 4
		default:
			return fmt.Errorf("filling the disk: %w", err)
		}
	}
	return nil
}

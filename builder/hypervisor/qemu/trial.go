package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// trialPoll is how often a trial looks for the guest's sign of life.
const trialPoll = 25 * time.Millisecond

// refusedError says that QEMU did not even start the guest.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// trial proves an accelerator: it starts a machine like all others, but without
// drives, and waits for its UEFI firmware to write to the serial port. By then
// the guest has run real, protected and long mode code on two processors, with
// paging, floating point and timer interrupts. That is more than a boot sector
// would prove, and needed: there are KVMs that run one, and nothing that follows.
func (d *Driver) trial(ctx context.Context, accel acceleration) error {
	facts, err := d.host.get(ctx, d.inspect)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "wbox-trial-")
	if err != nil {
		return fmt.Errorf("making a folder for the trial: %w", err)
	}
	defer os.RemoveAll(dir)
	cfg := hypervisor.Config{
		Name: "trial", Dir: dir, CPUs: 2, MemoryMiB: 512,
		Firmware: hypervisor.UEFI, SerialLog: filepath.Join(dir, "serial.log"),
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.opts.TrialTimeout,
		fmt.Errorf("its firmware shows no sign of life within %v: the guest hangs", d.opts.TrialTimeout))
	defer cancel()
	m, err := d.start(ctx, cfg, facts.firmware, accel)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &refusedError{err}
	}
	defer m.Kill()
	tick := time.NewTicker(trialPoll)
	defer tick.Stop()
	for {
		if info, err := os.Stat(cfg.SerialLog); err == nil && info.Size() > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.Done():
			if m.Err() != nil {
				return m.Err()
			}
			return errors.New("the guest switched itself off")
		case <-tick.C:
		}
	}
}

// Package qemu runs machines with QEMU: a q35 PC with an AHCI disk and CD
// drives, an e1000e card on a user-mode network and UEFI or BIOS firmware, all
// of which Windows Server drives out of the box. It must not import spec, stage,
// a stage, or another driver.
//
// Argv makes the command line and nothing else does; qmp.go speaks to the
// running QEMU; trial.go proves an accelerator by starting a guest under it.
package qemu

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// Options adapt a Driver to a host. The zero value is right for most.
type Options struct {
	// Program is QEMU for amd64 guests. Default: qemu-system-x86_64.
	Program string
	// FirmwareCode and FirmwareVars are the two halves of an OVMF build without
	// Secure Boot. Default: looked for where distributions put them.
	FirmwareCode, FirmwareVars string
	// TrialTimeout is how long an accelerator may take to start the firmware,
	// a second's work for one that does its job. Default: 15 s, for a
	// busy host; a guest that QEMU itself gives up on is noticed at once.
	TrialTimeout time.Duration
	// StartTimeout is how long QEMU may take to answer. Default: 30 s.
	StartTimeout time.Duration
}

// Driver starts QEMU machines.
type Driver struct {
	opts         Options
	goos, goarch string // this host's, other ones in tests
	kvmDevice    string
	host         once[hostFacts]
	accel        once[acceleration]
}

var (
	_ hypervisor.Driver        = (*Driver)(nil)
	_ hypervisor.Machine       = (*Machine)(nil)
	_ hypervisor.Screenshotter = (*Machine)(nil)
	_ hypervisor.KeySender     = (*Machine)(nil)
	_ hypervisor.ConsoleServer = (*Machine)(nil)
)

// New returns a driver that has not looked at this host yet.
func New(opts Options) *Driver {
	if opts.Program == "" {
		opts.Program = "qemu-system-x86_64"
	}
	if opts.TrialTimeout == 0 {
		opts.TrialTimeout = 15 * time.Second
	}
	if opts.StartTimeout == 0 {
		opts.StartTimeout = 30 * time.Second
	}
	return &Driver{
		opts: opts, goos: runtime.GOOS, goarch: runtime.GOARCH, kvmDevice: "/dev/kvm",
		host: newOnce[hostFacts](), accel: newOnce[acceleration](),
	}
}

// Name returns "qemu".
func (d *Driver) Name() string { return "qemu" }

// Probe finds QEMU (6.2 or newer) and its firmware, and tries out this host's
// accelerator with a guest. A program or firmware that is missing or too old is
// a *fault.Problem of class Host; an accelerator that does not work is not an
// error but a note in the features.
func (d *Driver) Probe(ctx context.Context) (hypervisor.Features, error) {
	host, err := d.host.get(ctx, d.inspect)
	if err != nil {
		return hypervisor.Features{}, err
	}
	accel, err := d.accel.get(ctx, d.accelerate)
	if err != nil {
		return hypervisor.Features{}, fmt.Errorf("probing the accelerator: %w", err)
	}
	return hypervisor.Features{
		Version:         host.version,
		Accelerator:     accel.name,
		AcceleratorNote: accel.note,
		BackingChain:    true,
		Screenshot:      true,
		SendKeys:        true,
	}, nil
}

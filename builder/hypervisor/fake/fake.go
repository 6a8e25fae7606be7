// Package fake is a hypervisor.Driver without machines: a guest is a function
// that a test gives, and everything else (power, resets, forwarded ports, the
// serial log) behaves as with a real one. It is for tests only and must not
// import spec, stage, a stage, or another driver.
package fake

import (
	"context"
	"sync"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// Boot is what a guest does from its power-on, or a reset, to the next. It runs
// in a goroutine of its own; its context ends when the guest is reset or off.
// After it has returned, the guest does nothing more but stays on.
type Boot func(ctx context.Context, g *Guest)

// Driver starts fake machines. Its fields are set before its first use.
type Driver struct {
	// Boot is every guest's behaviour; g.Config tells guests apart. A nil Boot
	// makes guests that never do anything.
	Boot Boot
	// Features is what Probe finds. New sets it to an emulation that can do all.
	Features hypervisor.Features
	// ProbeErr, if set, is what Probe and Start fail with.
	ProbeErr error
	// NoPorts makes forwarded ports lead nowhere: nothing listens on this host, as
	// is needed where a test's clock is not the real one (testing/synctest).
	NoPorts bool
	// StartErr, if set, may refuse to start a machine.
	StartErr func(hypervisor.Config) error

	mu       sync.Mutex
	machines []*Machine
}

var (
	_ hypervisor.Driver        = (*Driver)(nil)
	_ hypervisor.Machine       = (*Machine)(nil)
	_ hypervisor.Screenshotter = (*Machine)(nil)
	_ hypervisor.KeySender     = (*Machine)(nil)
	_ hypervisor.ConsoleServer = (*Machine)(nil)
)

// New returns a driver whose guests behave as boot says.
func New(boot Boot) *Driver {
	return &Driver{Boot: boot, Features: hypervisor.Features{
		Version: "1.0.0", Accelerator: hypervisor.Emulation, AcceleratorNote: "the machines are fakes",
		BackingChain: true, Screenshot: true, SendKeys: true,
	}}
}

// Name returns "fake".
func (d *Driver) Name() string { return "fake" }

// Probe returns the driver's Features and ProbeErr.
func (d *Driver) Probe(ctx context.Context) (hypervisor.Features, error) {
	if ctx.Err() != nil {
		return hypervisor.Features{}, context.Cause(ctx)
	}
	if d.ProbeErr != nil {
		return hypervisor.Features{}, d.ProbeErr
	}
	return d.Features, nil
}

// Start boots a guest.
func (d *Driver) Start(ctx context.Context, cfg hypervisor.Config) (hypervisor.Machine, error) {
	if _, err := d.Probe(ctx); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if d.StartErr != nil {
		if err := d.StartErr(cfg); err != nil {
			return nil, err
		}
	}
	m, err := newMachine(cfg, d.NoPorts)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.machines = append(d.machines, m)
	d.mu.Unlock()
	boot := d.Boot
	if boot == nil {
		boot = func(context.Context, *Guest) {}
	}
	go m.live(boot)
	return m, nil
}

// Machines returns all machines that were ever started, in that order.
func (d *Driver) Machines() []*Machine {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*Machine(nil), d.machines...)
}

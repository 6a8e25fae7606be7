package qemu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/exec"
)

// portAttempts is how often a machine is started anew because another program
// has taken one of its ports between our choice and QEMU's start.
const portAttempts = 5

// nvramName is the file in Config.Dir that keeps the UEFI variables. One that
// is there already is used, so that a machine can be given another's.
const nvramName = "nvram.fd"

// Start starts a machine. See hypervisor.Driver. The accelerators KVM and HVF
// are used as asked for; Auto takes what Probe has found to work. A disk that
// another machine uses is a *fault.Problem of class Busy.
func (d *Driver) Start(ctx context.Context, cfg hypervisor.Config) (hypervisor.Machine, error) {
	if cfg.Firmware == "" {
		cfg.Firmware = hypervisor.UEFI
	}
	if err := validate(cfg); err != nil {
		return nil, fmt.Errorf("checking the machine's configuration: %w", err)
	}
	facts, err := d.host.get(ctx, d.inspect)
	if err != nil {
		return nil, err
	}
	accel := acceleration{name: cfg.Accelerator, hyperV: true}
	if cfg.Accelerator == hypervisor.Auto || cfg.Accelerator == "" {
		if accel, err = d.accel.get(ctx, d.accelerate); err != nil {
			return nil, err
		}
	}
	m, err := d.start(ctx, cfg, facts.firmware, accel)
	if err != nil {
		return nil, fmt.Errorf("starting the machine %s: %w", cfg.Name, err)
	}
	return m, nil
}

// start starts a machine under a chosen accelerator.
func (d *Driver) start(ctx context.Context, cfg hypervisor.Config, fw firmware, accel acceleration) (*Machine, error) {
	host := Host{Accelerator: accel.name, HyperV: accel.hyperV}
	if cfg.Firmware != hypervisor.BIOS {
		host.FirmwareCode, host.NVRAM = fw.code, filepath.Join(cfg.Dir, nvramName)
		if err := copyNVRAM(ctx, fw.vars, host.NVRAM); err != nil {
			return nil, err
		}
	}
	password := ""
	if cfg.Console {
		var err error
		if host.Console, password, err = consoleSecret(ctx, cfg.Dir); err != nil {
			return nil, err
		}
	}
	for attempt := 1; ; attempt++ {
		m, err := d.attempt(ctx, cfg, host)
		if err == nil {
			m.password = password
		}
		if err == nil || attempt == portAttempts || !strings.Contains(err.Error(), "Could not set up host forwarding rule") {
			return m, explain(err, cfg)
		}
	}
}

// attempt starts QEMU once, on ports that are free now.
func (d *Driver) attempt(ctx context.Context, cfg hypervisor.Config, host Host) (_ *Machine, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.opts.StartTimeout,
		fmt.Errorf("QEMU has not answered within %v", d.opts.StartTimeout))
	defer cancel()
	if host.Ports, err = freePorts(cfg.Forwards); err != nil {
		return nil, err
	}
	ch, err := newChannel()
	if err != nil {
		return nil, err
	}
	defer ch.close()
	host.Monitor = ch.option()
	proc, err := exec.Start(context.WithoutCancel(ctx), exec.Command{
		Program: d.opts.Program, Args: Argv(cfg, host), Dir: cfg.Dir, ExtraFiles: ch.files(),
	})
	if err != nil {
		return nil, err
	}
	conn, err := ch.accept(ctx, proc.Done())
	if err != nil {
		return nil, startError(ctx, proc, err)
	}
	m := newMachine(cfg, host, proc, conn)
	if err := m.run(ctx); err != nil {
		err = startError(ctx, proc, err)
		<-m.done
		return nil, err
	}
	return m, nil
}

// startError ends a QEMU that has not come up and says why: in QEMU's own words
// where it has ended by itself.
func startError(ctx context.Context, proc *exec.Process, err error) error {
	if errors.Is(err, errHangup) {
		// It hangs up just before it ends; its words are worth a wait.
		select {
		case <-proc.Done():
		case <-ctx.Done():
		}
	}
	proc.Kill()
	if proc.Err() != nil {
		return proc.Err()
	}
	if out := strings.TrimSpace(proc.Output()); out != "" {
		return fmt.Errorf("%w: %s", err, out)
	}
	return err
}

// explain turns refusals of QEMU that a user can mend into problems.
func explain(err error, cfg hypervisor.Config) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), `Failed to get "write" lock`):
		return &fault.Problem{Class: fault.Busy, Field: "disk", Value: cfg.Disk,
			Why: "another virtual machine uses it", Fix: "wait for the other build to end, or stop it", Err: err}
	case strings.Contains(err.Error(), "Cannot allocate memory"), strings.Contains(err.Error(), "cannot set up guest memory"):
		return &fault.Problem{Class: fault.Host, Field: "memory", Value: fmt.Sprintf("%d MiB", cfg.MemoryMiB),
			Why: "this host has not that much to give", Fix: "give the machine less memory, or end other programs", Err: err}
	}
	return err
}

// copyNVRAM gives the machine UEFI variables of its own, unless it has some.
func copyNVRAM(ctx context.Context, from, to string) error {
	if isFile(to) {
		return nil
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = atomicfile.Write(ctx, to, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("copying the UEFI variables: %w", err)
	}
	return nil
}

// freePorts chooses a free port of 127.0.0.1 for each forward. All are held
// until all are found, so that no two are the same.
func freePorts(forwards []hypervisor.Forward) (map[string]int, error) {
	ports := make(map[string]int, len(forwards))
	for _, f := range forwards {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer l.Close()
		ports[f.Name] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// validate checks a Config, and the files that it names, all at once.
func validate(cfg hypervisor.Config) error {
	errs := []error{cfg.Validate()}
	if info, err := os.Stat(cfg.Dir); err != nil || !info.IsDir() {
		errs = append(errs, fmt.Errorf("folder %q: there is none", cfg.Dir))
	}
	for _, path := range append([]string{cfg.Disk}, cfg.Media...) {
		if path != "" && !isFile(path) {
			errs = append(errs, fmt.Errorf("image %q: there is no such file", path))
		}
	}
	if len(cfg.Media) > maxMedia {
		errs = append(errs, fmt.Errorf("%d media: there are %d CD drives", len(cfg.Media), maxMedia))
	}
	return errors.Join(errs...)
}

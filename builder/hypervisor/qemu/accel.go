package qemu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// acceleration is how guest code is executed on this host.
type acceleration struct {
	name   hypervisor.Accelerator
	hyperV bool   // KVM offers the enlightenments that Argv asks for
	note   string // why nothing better is used
}

func emulation(format string, args ...any) acceleration {
	return acceleration{name: hypervisor.Emulation, note: fmt.Sprintf(format, args...)}
}

// accelerate finds the best accelerator that runs a guest. Only the end of ctx
// is an error.
func (d *Driver) accelerate(ctx context.Context) (acceleration, error) {
	switch {
	case d.goarch != "amd64":
		return emulation("guests are amd64 and this host is %s, which can only emulate them", d.goarch), nil
	case d.goos == "linux":
		if why := d.kvmProblem(); why != "" {
			return emulation("%s", why), nil
		}
		return d.tryOut(ctx, hypervisor.KVM, "KVM")
	case d.goos == "darwin":
		return d.tryOut(ctx, hypervisor.HVF, "the Hypervisor framework")
	case d.goos == "windows":
		return emulation("KVM is not there on Windows itself; inside WSL2 it is"), nil
	}
	return emulation("no accelerator is known for %s", d.goos), nil
}

// kvmProblem says why KVM can't be used at all, or "".
func (d *Driver) kvmProblem() string {
	f, err := os.OpenFile(d.kvmDevice, os.O_RDWR, 0)
	switch {
	case err == nil:
		f.Close()
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no %s: switch on virtualization in this machine's firmware setup (or, in a virtual machine, "+
			"nested virtualization), then load the module kvm_intel or kvm_amd", d.kvmDevice)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%s may not be opened by this user: join its group with \"sudo usermod -aG kvm $USER\" and log in again", d.kvmDevice)
	}
	return fmt.Sprintf("%s can't be opened: %v", d.kvmDevice, err)
}

// tryOut starts a guest under an accelerator, and falls back to emulation with
// the reason. A KVM without the Hyper-V interface is used as it is.
func (d *Driver) tryOut(ctx context.Context, name hypervisor.Accelerator, title string) (acceleration, error) {
	accel := acceleration{name: name, hyperV: name == hypervisor.KVM}
	err := d.trial(ctx, accel)
	if refused := (*refusedError)(nil); errors.As(err, &refused) && accel.hyperV {
		accel.hyperV = false
		if err = d.trial(ctx, accel); err == nil {
			accel.note = "KVM works, without the Hyper-V interface that makes Windows faster: " + firstLine(refused)
		}
	}
	switch {
	case err == nil:
		return accel, nil
	case ctx.Err() != nil:
		return acceleration{}, context.Cause(ctx)
	}
	return emulation("%s is there but does not run guests: %v", title, firstLine(err)), nil
}

// firstLine leaves out what follows QEMU's first words, such as a dump of all
// registers.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSpace(line)
}

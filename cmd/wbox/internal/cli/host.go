package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/qemu"
)

// Host is what a build runs on. The zero value is this machine with QEMU;
// tests of what may go wrong on a host run everything else for real.
type Host struct {
	Driver   hypervisor.Driver // Optional: default: QEMU
	Dial     builder.Dialer    // Optional: default: WinRM
	Capacity builder.Capacity  // Optional: as builder.Options
	Poll     time.Duration     // Optional: as builder.Options
	Clock    func() time.Time  // Optional: as builder.Options
}

// options are the builder's, with what Host leaves open.
func (h Host) options() builder.Options {
	o := builder.Options{Driver: h.Driver, Dial: h.Dial, Capacity: h.Capacity, Poll: h.Poll, Clock: h.Clock}
	if o.Driver == nil {
		o.Driver = qemu.New(qemu.Options{})
	}
	if o.Dial == nil {
		o.Dial = dial
	}
	return o
}

// Signals returns a context that ends with the first Ctrl-C or SIGTERM. The
// second one ends the program at once.
func Signals() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	// In "wbox build 2>&1 | tee log", Ctrl-C ends tee as well. What is printed
	// after that is lost, but must not end the cleanup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx
}

// Command init is the first process of the stand-in guest: Windows Setup when
// it was booted from the medium, Windows when it was booted from the disk.
//
// It runs in a virtual machine and nowhere else: it formats disks and turns the
// machine off. What it does is in the internal packages; here is only the order.
package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/scripts/standin/internal/agent"
	"github.com/wbox-dev/wbox/scripts/standin/internal/containerd"
	"github.com/wbox-dev/wbox/scripts/standin/internal/guestos"
	"github.com/wbox-dev/wbox/scripts/standin/internal/install"
	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
	"github.com/wbox-dev/wbox/scripts/standin/internal/volume"
)

// mediumLabel is the label of the installation medium, as package media writes it.
const mediumLabel = "WBOX_STAND_IN"

// address and gateway are what QEMU's user network has for its guest.
const (
	address = "10.0.2.15/24"
	gateway = "10.0.2.2"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "init: this is the first process of a stand-in guest and does nothing elsewhere")
		os.Exit(2)
	}
	if err := guestos.MountBase("/"); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	console := guestos.OpenConsole()
	if err := guestos.StandardStreams(); err != nil {
		console.Printf("%v", err)
	}
	ctx := context.Background()
	if err := guestos.LoadModules("/modules"); err != nil {
		console.Printf("%v", err)
	}
	mode := guestos.CommandLine("wbox.standin")
	console.Printf("a stand-in of wbox, not Windows: %s", mode)
	var err error
	switch mode {
	case "setup":
		err = setup(ctx, console)
	case "disk":
		err = run(ctx, console)
	default:
		err = fmt.Errorf("unknown mode %q", mode)
	}
	// Windows Setup would show its error and wait for somebody; what looks at
	// the serial log finds this line, and a machine that stays on and silent.
	console.Printf("setup failed: %v", err)
	for {
		unix.Pause() //nolint:errcheck // it ends with a signal, and then begins again
	}
}

// setup installs and restarts; it returns only with an error.
func setup(ctx context.Context, console *guestos.Console) error {
	template, err := os.ReadFile("/ntfs.img")
	if err != nil {
		return err
	}
	if err := install.Run(ctx, console, mediumLabel, template); err != nil {
		return err
	}
	console.Printf("setup: restarting from the disk")
	return guestos.Leave(guestos.Reboot)
}

// run is one boot from the disk; it returns only with an error.
func run(ctx context.Context, console *guestos.Console) error {
	system, err := guestos.WaitVolume(ctx, 20*time.Second, "the installed system", func(v volume.Info) bool {
		return v.Kind == volume.Ext4 && v.UUID == volume.SystemUUID
	})
	if err != nil {
		return err
	}
	const root = "/system"
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := guestos.Mount(system.Path(), root, "ext4", unix.MS_NOATIME, "noinit_itable"); err != nil {
		return err
	}
	if err := guestos.MountBase(root); err != nil {
		return err
	}
	if err := guestos.SwitchRoot(root); err != nil {
		return err
	}
	card, err := guestos.Network(ctx, netip.MustParsePrefix(address), netip.MustParseAddr(gateway))
	if err != nil {
		return err
	}
	console.Printf("network: %s on %s", address, card)
	store, err := state.Open("/c")
	if err != nil {
		return err
	}
	disk := guestos.Device{Name: system.Parent}
	devices, err := guestos.Devices()
	if err != nil {
		return err
	}
	for _, d := range devices {
		if d.Name == system.Parent {
			disk = d
		}
	}
	m := machine.New(disk)
	if err := guestos.PowerButton(ctx, func() {
		console.Printf("the power button was pressed")
		m.Restart(0, true)
	}); err != nil {
		console.Printf("%v", err)
	}
	a := &agent.Agent{State: store, Machine: m, C: "/c", Seed: seedFinder(), Logf: console.Printf, Listen: listen,
		Outside: func(ctx context.Context) error { return guestos.Outside(ctx, netip.MustParseAddr(gateway)) }}
	if runtime := containerd.Find("/c", console.Printf); runtime != nil {
		a.Ctr = runtime.Ctr
	}
	host, err := startPowerShell(ctx, console, func(program string, args []string) pshost.Result {
		return pshost.Result(a.Program(ctx, "SYSTEM", program, args))
	})
	if err != nil {
		return err
	}
	if host != nil {
		a.Host = host
	}
	if err := a.Boot(ctx); err != nil {
		return err
	}
	console.Printf("ready")
	how := <-m.End()
	console.Printf("shutting down")
	return guestos.Leave(how)
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp4", fmt.Sprintf(":%d", port))
}

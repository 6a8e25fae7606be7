// Package hypervisor is the contract between the engine and whatever runs its
// virtual machines. A Driver starts a Machine from a Config; a driver does not
// know who hosts it. It must not import spec, stage or a stage.
//
// Every method that takes a context returns soon after the context ends. What
// this host lacks (a program, firmware, a working accelerator) is reported as a
// *fault.Problem of class fault.Host.
package hypervisor

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// Firmware names what starts the guest's boot loader.
type Firmware string

// The firmwares that a machine can have.
const (
	UEFI Firmware = "uefi"
	BIOS Firmware = "bios"
)

// Accelerator names how guest code is executed.
type Accelerator string

// The accelerators a driver may find; Auto lets the driver probe.
const (
	Auto      Accelerator = "auto"
	KVM       Accelerator = "kvm"
	HVF       Accelerator = "hvf"
	Emulation Accelerator = "tcg" // software emulation: right, and slow
)

// Features says what a driver offers on this host, found out by a real probe.
type Features struct {
	Version         string      // the hypervisor's own version, such as "7.2.22"
	Accelerator     Accelerator // the best one that works here
	AcceleratorNote string      // why a better one was passed over; empty if none was
	BackingChain    bool        // disks may be copy-on-write overlays
	Screenshot      bool
	SendKeys        bool
}

// Forward asks for a guest's TCP port to be reachable from this host.
type Forward struct {
	Name      string // such as "winrm-https"
	GuestPort int
}

// Config describes one machine. All paths are absolute.
type Config struct {
	Name        string   // a label for logs and process titles: letters, digits, '-'
	Dir         string   // an existing private folder for sockets, NVRAM copy, logs
	CPUs        int      // virtual processors, at least 1
	MemoryMiB   int      // memory, at least 512
	Firmware    Firmware // UEFI unless said otherwise
	Disk        string   // the system disk, a qcow2 file, opened read-write
	Media       []string // ISO images, attached read-only as CD drives in this order
	BootMedia   bool     // the first medium is tried after an unbootable disk
	Accelerator Accelerator
	Forwards    []Forward
	SerialLog   string // file that receives the first serial port's output
	Console     bool   // people want to see and use the screen: see ConsoleServer
	// Clock is what the guest's clock starts from. Zero: this host's. Windows
	// counts its evaluation by it, so that only a stand-in's is ever moved.
	Clock time.Time
}

// Machine is one running guest. It is stopped by Kill or by the guest itself.
type Machine interface {
	// Endpoint returns the loopback address that leads to a forwarded guest port.
	Endpoint(name string) (netip.AddrPort, error)
	// Done is closed once the machine is off, however that came about.
	Done() <-chan struct{}
	// Err says, after Done, why the machine ended: nil after a clean power-off
	// or Kill, an error that holds the hypervisor's last output otherwise.
	Err() error
	// Activity returns a number that grows while the guest does anything
	// (disk, CD, serial or reset counters): a liveness sign for waits.
	Activity(ctx context.Context) (uint64, error)
	// Resets counts how often the guest has been reset since the start.
	Resets() int
	// PowerDown asks the guest to shut down (ACPI) and returns at once.
	PowerDown(ctx context.Context) error
	// Kill ends the machine at once and waits until it is gone. It is idempotent.
	Kill() error
}

// Screenshotter is implemented by machines that can show their screen.
type Screenshotter interface {
	// Screenshot writes a PNG of the screen to path, which it replaces.
	Screenshot(ctx context.Context, path string) error
}

// KeySender is implemented by machines that can press keys in the guest.
type KeySender interface {
	// SendKeys presses the named keys (QEMU's qcodes, such as "ret") in turn.
	SendKeys(ctx context.Context, keys ...string) error
}

// ConsoleServer is implemented by machines whose screen, keyboard and mouse can
// be used by a viewer on this host, where Config.Console asked for that.
type ConsoleServer interface {
	// Console returns where a viewer connects to.
	Console(ctx context.Context) (Console, error)
}

// Console is a way to a machine's screen.
type Console struct {
	URL      string // such as "vnc://127.0.0.1:5900"
	Password string // a secret
}

// Driver starts machines. Implementations are safe for concurrent use.
type Driver interface {
	// Name is the driver's stable id, such as "qemu".
	Name() string
	// Probe finds out what works here. The answer is remembered for the
	// driver's life, failures too; it takes seconds at the most.
	Probe(ctx context.Context) (Features, error)
	// Start starts a machine; it is running when Start returns. The machine
	// lives until it is killed, ends by itself or this process dies; the
	// context bounds only the start.
	Start(ctx context.Context, cfg Config) (Machine, error)
}

// ErrPoweredOff is returned by waits for a guest whose machine is off, and
// wrapped by the errors of Activity, PowerDown, Screenshot and SendKeys then.
var ErrPoweredOff = errors.New("the machine is off")

// StopTimeout is how long Kill waits for the hypervisor's process to go.
const StopTimeout = 10 * time.Second

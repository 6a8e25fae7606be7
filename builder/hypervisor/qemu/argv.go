package qemu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// maxMedia is how many CD drives fit: q35 has six SATA ports, one is the disk's.
const maxMedia = 5

// emulatedCPU is the processor under software emulation: the oldest named model
// at the level x86-64-v2, below which Windows Server 2025 does not start (it
// wants POPCNT and SSE4.2: microsoft/mu_tiano_platforms#545), and wholly within
// what the emulator can do.
const emulatedCPU = "Nehalem-v1"

// enlightenments are the parts of Hyper-V's guest interface that QEMU's
// documentation recommends for Windows guests and KVM has offered since Linux
// 5.0. The short form hv-passthrough is a debugging aid, and guests with the
// Hyper-V role hang under it (QEMU's docs/system/i386/hyperv.rst).
const enlightenments = "hv-relaxed,hv-vapic,hv-spinlocks=0x1fff,hv-vpindex,hv-runtime,hv-synic," +
	"hv-stimer,hv-time,hv-frequencies,hv-tlbflush,hv-ipi"

// macAddress is every machine's: each has a network to itself, and Windows takes
// a card with another address for a new one.
const macAddress = "52:54:00:77:62:78"

// Host is what Argv has to know beyond the machine's Config.
type Host struct {
	Accelerator  hypervisor.Accelerator // never Auto
	HyperV       bool                   // KVM offers the enlightenments
	FirmwareCode string                 // OVMF's code, shared
	NVRAM        string                 // this machine's copy of OVMF's variables
	Ports        map[string]int         // the port on 127.0.0.1 of each forward, by name
	Monitor      string                 // how QEMU reaches us: a socket chardev's options, such as "fd=3"
	Console      string                 // the file with the console's password, with Config.Console
}

// Argv returns QEMU's arguments, without the program's name, for a valid Config.
// It is a pure function: this is where to see what hardware a guest gets.
func Argv(cfg hypervisor.Config, host Host) []string {
	args := []string{
		"-name", "wbox-" + cfg.Name,
		"-no-user-config", "-nodefaults", // nothing but what is listed here
		"-display", "none",
	}
	args = append(args, processor(cfg, host)...)
	args = append(args, "-m", strconv.Itoa(cfg.MemoryMiB))
	// UTC is the answer file's time zone, so that Windows, which takes this
	// clock for local time, reads it as meant.
	args = append(args, "-rtc", "base="+clock(cfg)+",driftfix=slew")
	if cfg.Firmware != hypervisor.BIOS {
		args = append(args,
			"-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+escape(host.FirmwareCode),
			"-drive", "if=pflash,unit=1,format=raw,file="+escape(host.NVRAM))
	}
	// Nobody would wake a guest that goes to sleep.
	args = append(args, "-global", "ICH9-LPC.disable_s3=1", "-global", "ICH9-LPC.disable_s4=1")
	args = append(args, "-boot", "strict=on") // only what has a bootindex: never the network
	args = append(args, drives(cfg)...)
	args = append(args, network(cfg, host)...)
	args = append(args,
		"-vga", "std",
		"-device", "qemu-xhci,id=usb",
		"-device", "usb-kbd,bus=usb.0",
		"-device", "usb-tablet,bus=usb.0")
	if cfg.Console {
		args = append(args,
			"-object", "secret,id=console,format=raw,file="+escape(host.Console),
			"-vnc", "127.0.0.1:0,to=999,password-secret=console") // the first free port from 5900 on
	}
	if cfg.SerialLog != "" {
		args = append(args,
			"-chardev", "file,id=serial0,append=on,path="+escape(cfg.SerialLog),
			"-serial", "chardev:serial0")
	}
	return append(args,
		"-chardev", "socket,id=monitor,"+host.Monitor,
		"-mon", "chardev=monitor,mode=control",
		"-S") // until the monitor listens, so that no event is missed
}

// processor returns what executes the guest's code, and on what machine.
func processor(cfg hypervisor.Config, host Host) []string {
	machine, cpu := "q35", emulatedCPU
	switch host.Accelerator {
	case hypervisor.KVM:
		machine, cpu = "q35,hpet=off", "host"
		if host.HyperV {
			cpu += "," + enlightenments
		}
	case hypervisor.HVF:
		machine, cpu = "q35,hpet=off", "host"
	}
	return []string{
		"-machine", machine,
		"-accel", string(host.Accelerator),
		"-cpu", cpu,
		"-smp", fmt.Sprintf("%d,sockets=1,cores=%[1]d,threads=1", cfg.CPUs),
	}
}

// drives returns the disk and the CDs on the machine's own AHCI controller.
func drives(cfg hypervisor.Config) []string {
	var args []string
	if cfg.Disk != "" {
		args = append(args,
			"-drive", "if=none,id=disk,format=qcow2,cache=writeback,discard=unmap,detect-zeroes=unmap,file="+escape(cfg.Disk),
			"-device", "ide-hd,drive=disk,bus=ide.0,bootindex=1")
	}
	for i, path := range cfg.Media {
		device := fmt.Sprintf("ide-cd,drive=cd%d,bus=ide.%d", i, i+1)
		if i == 0 && cfg.BootMedia {
			device += ",bootindex=2"
		}
		args = append(args,
			"-drive", fmt.Sprintf("if=none,id=cd%d,media=cdrom,format=raw,readonly=on,file=%s", i, escape(path)),
			"-device", device)
	}
	return args
}

// clock returns the time that the guest's clock starts from.
func clock(cfg hypervisor.Config) string {
	if cfg.Clock.IsZero() {
		return "utc"
	}
	return cfg.Clock.UTC().Format("2006-01-02T15:04:05")
}

// network returns a card on a network of its own behind QEMU, into which lead
// ports of 127.0.0.1 only.
func network(cfg hypervisor.Config, host Host) []string {
	net := "user,id=net0"
	for _, f := range cfg.Forwards {
		net += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:%d", host.Ports[f.Name], f.GuestPort)
	}
	return []string{
		"-netdev", net,
		"-device", "e1000e,netdev=net0,romfile=,mac=" + macAddress, // no ROM: it would only boot from the network
	}
}

// escape protects the commas in an option's value.
func escape(value string) string { return strings.ReplaceAll(value, ",", ",,") }

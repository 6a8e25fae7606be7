package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/report"
)

// CheckStatus says how a check of this host ended.
type CheckStatus string

// How a check of this host ends.
const (
	CheckOK      CheckStatus = "ok"
	CheckWarn    CheckStatus = "warn"    // something works less well, or not all of it
	CheckMissing CheckStatus = "missing" // it is not there
)

// Check is one thing that was looked at.
type Check struct {
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`
	Fix    string      `json:"fix,omitempty"`
}

// Ability is something that wbox does, and whether it works here.
type Ability struct {
	What  string `json:"what"`
	Works bool   `json:"works"`
	Why   string `json:"why,omitempty"` // or how
}

// Diagnosis is what works on this host.
type Diagnosis struct {
	Checks    []Check   `json:"checks"`
	Abilities []Ability `json:"abilities"`
	CanBake   bool      `json:"canBake"` // a stand-in's box at the least
}

// DoctorOptions say what to look at.
type DoctorOptions struct {
	Store    string            // Required: the folder of results
	Driver   hypervisor.Driver // Required
	Capacity Capacity          // Optional: default: this host's
	Tools    Tools             // Optional: default: the programs in PATH
	GOOS     string            // Optional: default: this host's
	GOARCH   string            // Optional: default: this host's
}

// doctor is one examination.
type doctor struct {
	DoctorOptions
	mu      sync.Mutex
	byName  map[string]Check
	blocked []string               // what keeps every bake from running
	accel   hypervisor.Accelerator // empty where it could not be tried out
	realFit bool                   // disk and memory suffice for Windows
}

// order is how checks are listed.
func order() []string {
	return []string{"system", "QEMU", "UEFI firmware", "qemu-img", "acceleration", "kvm group", "store", "disk", "memory",
		"temporary files", "go", "git", "vagrant", "vagrant-libvirt", "wine"}
}

// Doctor looks at this host with the checks that a build makes, and some more,
// and says what works. It changes nothing but makes the store's folder. It
// takes as long as trying out an accelerator does, seconds. The error is for the
// end of ctx.
func Doctor(ctx context.Context, o DoctorOptions) (*Diagnosis, error) {
	d := &doctor{DoctorOptions: o, byName: map[string]Check{}, realFit: true}
	if d.GOOS == "" {
		d.GOOS = runtime.GOOS
	}
	if d.GOARCH == "" {
		d.GOARCH = runtime.GOARCH
	}
	var wg sync.WaitGroup
	for _, look := range []func(context.Context){d.system, d.driver, d.image, d.room, d.temp, d.compiler, d.git, d.vagrant, d.wine} {
		wg.Go(func() { look(ctx) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &Diagnosis{CanBake: len(d.blocked) == 0}
	slices.SortFunc(d.blocked, func(a, b string) int { return slices.Index(order(), a) - slices.Index(order(), b) })
	for _, name := range order() {
		if c, ok := d.byName[name]; ok {
			out.Checks = append(out.Checks, c)
		}
	}
	out.Abilities = d.abilities()
	return out, nil
}

func (d *doctor) add(c Check) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byName[c.Name] = c
}

// block adds a check without which nothing can be baked here.
func (d *doctor) block(c Check) {
	d.add(c)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blocked = append(d.blocked, c.Name)
}

// problem makes a check of an error.
func problem(name string, err error) Check {
	c := Check{Name: name, Status: CheckMissing, Detail: strings.TrimSpace(err.Error())}
	var p *fault.Problem
	if errors.As(err, &p) {
		bare := *p
		bare.Fix = ""
		c.Detail, c.Fix = bare.Error(), p.Fix
	}
	return c
}

func (d *doctor) system(context.Context) {
	c := Check{Name: "system", Status: CheckOK, Detail: d.GOOS + "/" + d.GOARCH}
	switch {
	case d.GOARCH != "amd64":
		c.Status, c.Fix = CheckMissing, "bake on an amd64 host; all that boots nothing works here"
		c.Detail += ": Windows nodes are amd64, and such machines can only be emulated here"
		d.block(c)
		return
	case d.GOOS == "windows":
		c.Status, c.Fix = CheckWarn, "bake inside WSL2 with KVM; all that boots nothing works here"
		c.Detail += ": guests can only be emulated on Windows itself"
	}
	d.add(c)
}

// driver looks at what runs machines, and how fast.
func (d *doctor) driver(ctx context.Context) {
	missing := false
	if i, ok := d.Driver.(hypervisor.Inspector); ok {
		for _, p := range i.Parts(ctx) {
			if p.Err != nil {
				missing = true
				d.block(problem(p.Name, p.Err))
				continue
			}
			d.add(Check{Name: p.Name, Status: CheckOK, Detail: p.Found})
		}
	}
	d.kvm()
	if missing {
		d.add(Check{Name: "acceleration", Status: CheckMissing, Detail: "can't be tried out without the above"})
		return
	}
	f, err := d.Driver.Probe(ctx)
	if err != nil {
		d.block(problem("acceleration", err))
		return
	}
	d.accel = f.Accelerator
	c := Check{Name: "acceleration", Status: CheckOK, Detail: string(f.Accelerator) + " runs guests"}
	if f.AcceleratorNote != "" {
		c.Status, c.Detail = CheckWarn, string(f.Accelerator)+": "+f.AcceleratorNote
	}
	if f.Accelerator == hypervisor.Emulation {
		c.Status, c.Fix = CheckWarn, "run it where KVM works; --allow-emulation bakes real Windows without, which takes hours"
	}
	d.add(c)
}

// kvm says whether this user may use KVM, where there is any.
func (d *doctor) kvm() {
	if d.GOOS != "linux" {
		return
	}
	const dev = "/dev/kvm"
	f, err := os.OpenFile(dev, os.O_RDWR, 0)
	switch {
	case err == nil:
		f.Close()
		d.add(Check{Name: "kvm group", Status: CheckOK, Detail: "this user may open " + dev})
	case errors.Is(err, os.ErrPermission):
		d.add(Check{Name: "kvm group", Status: CheckMissing, Detail: "this user may not open " + dev,
			Fix: `join its group with "sudo usermod -aG kvm $USER" and log in again`})
	default:
		d.add(Check{Name: "kvm group", Status: CheckMissing, Detail: "there is no " + dev,
			Fix: "switch on virtualization in the firmware setup, or nested virtualization of this virtual machine"})
	}
}

func (d *doctor) image(context.Context) {
	path, err := d.Tools.look("qemu-img")
	if err != nil {
		d.block(problem("qemu-img", err))
		return
	}
	d.add(Check{Name: "qemu-img", Status: CheckOK, Detail: path})
}

func (d *doctor) temp(context.Context) {
	dir := os.TempDir()
	if err := probeWritable(dir); err != nil {
		d.block(Check{Name: "temporary files", Status: CheckMissing, Detail: dir + " can't be written", Fix: "name another folder with TMPDIR"})
		return
	}
	d.add(Check{Name: "temporary files", Status: CheckOK, Detail: dir})
}

// room looks at the store, the disk it is on, and the memory.
func (d *doctor) room(context.Context) {
	d.memory()
	s, err := cas.Open(d.Store)
	if err != nil {
		d.block(problem("store", err))
		return
	}
	d.add(Check{Name: "store", Status: CheckOK, Detail: d.Store})
	free, _, err := d.Capacity.disk(d.Store)
	if err != nil {
		d.add(Check{Name: "disk", Status: CheckWarn, Detail: "how much is free in " + d.Store + " is unknown: " + err.Error()})
		return
	}
	entries, err := s.Entries()
	if err != nil {
		d.block(problem("store", err))
		return
	}
	lines := newLineage(entries)
	windows, standIn := wholeBuild(lines, false), wholeBuild(lines, true)
	c := Check{Name: "disk", Status: CheckOK, Detail: fmt.Sprintf("%s free in %s; a first build of Windows takes about %s, one of a stand-in %s",
		report.Bytes(free), d.Store, report.Bytes(windows), report.Bytes(standIn))}
	if free < windows {
		d.tooSmall()
		c.Status, c.Fix = CheckWarn, "make room (wbox cache prune), or name a folder on a larger disk with --store or WBOX_STORE"
	}
	if free < standIn {
		c.Status = CheckMissing
		d.block(c)
		return
	}
	d.add(c)
}

// tooSmall records that Windows does not fit.
func (d *doctor) tooSmall() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.realFit = false
}

func (d *doctor) memory() {
	available, total, err := d.Capacity.memory()
	if err != nil || total == 0 {
		d.add(Check{Name: "memory", Status: CheckWarn, Detail: "is unknown on this system"})
		return
	}
	have := available
	detail := fmt.Sprintf("%s of %s free", report.Bytes(available), report.Bytes(total))
	if available == 0 {
		have, detail = total, report.Bytes(total)+" in all"
	}
	c := Check{Name: "memory", Status: CheckOK, Detail: fmt.Sprintf("%s; Windows gets %s, a stand-in %s", detail, report.Bytes(windowsMiB*mib), report.Bytes(standInMiB*mib))}
	if have < windowsMiB*mib {
		d.tooSmall()
		c.Status, c.Fix = CheckWarn, "end other programs, or give machines less with --memory"
	}
	if have < standInMiB*mib {
		c.Status = CheckMissing
		d.block(c)
		return
	}
	d.add(c)
}

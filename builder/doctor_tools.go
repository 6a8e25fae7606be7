package builder

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/internal/exec"
	"github.com/wbox-dev/wbox/builder/internal/wine"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Tools are the programs of this host. A field that is nil asks the real ones.
type Tools struct {
	Look func(program string) (path string, err error)
	Run  func(ctx context.Context, program string, args ...string) (stdout string, err error)
}

const wineProgram = "wine"

func (t Tools) look(program string) (string, error) {
	if t.Look != nil {
		return t.Look(program)
	}
	if program == wineProgram { // which may be called otherwise, and lie outside of PATH
		if path, err := wine.Find(); err == nil {
			return path, nil
		}
	}
	return exec.Look(program)
}

// toolDeadline is how long a program may take to say what it is. Vagrant, which
// is written in Ruby, takes seconds.
const toolDeadline = 30 * time.Second

func (t Tools) run(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolDeadline)
	defer cancel()
	if t.Run != nil {
		return t.Run(ctx, program, args...)
	}
	env := append(os.Environ(), "LC_ALL=C", "VAGRANT_CHECKPOINT_DISABLE=1", "GOTOOLCHAIN=local")
	out, err := exec.Run(ctx, exec.Command{Program: program, Args: args, Env: env})
	return string(out), err
}

// optional looks for a program that only some things need, and for what it
// says of itself.
func (d *doctor) optional(ctx context.Context, name, program, purpose string, args ...string) (found bool) {
	path, err := d.Tools.look(program)
	if err != nil {
		c := problem(name, err)
		c.Detail = "not found; " + purpose
		d.add(c)
		return false
	}
	out, err := d.Tools.run(ctx, path, args...)
	if err != nil {
		d.add(Check{Name: name, Status: CheckWarn, Detail: path + " does not work: " + firstLine(err.Error()), Fix: "mend or reinstall it; " + purpose})
		return false
	}
	d.add(Check{Name: name, Status: CheckOK, Detail: firstLine(out)})
	return true
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}

func (d *doctor) compiler(ctx context.Context) {
	d.optional(ctx, "go", "go", "it compiles Kubernetes: a folder of .exe files needs none", "version")
}

func (d *doctor) git(ctx context.Context) {
	d.optional(ctx, "git", "git", "it fetches Kubernetes from a repository: versions and folders need none", "--version")
}

func (d *doctor) wine(ctx context.Context) {
	d.optional(ctx, wineProgram, wineProgram, "it tries out kubelet.exe and kubeadm.exe, and finds out the version of your own (--k8s-version does without)", "--version")
}

func (d *doctor) vagrant(ctx context.Context) {
	if !d.optional(ctx, "vagrant", "vagrant", "it runs the boxes: baking them needs none", "--version") {
		return
	}
	const name, fix = "vagrant-libvirt", "vagrant plugin install vagrant-libvirt (on Debian and Ubuntu: sudo apt install vagrant-libvirt)"
	out, err := d.Tools.run(ctx, "vagrant", "plugin", "list")
	if err != nil {
		d.add(Check{Name: name, Status: CheckWarn, Detail: "vagrant does not list its plugins: " + firstLine(err.Error()), Fix: fix})
		return
	}
	for line := range strings.Lines(out) {
		if plugin, _, _ := strings.Cut(strings.TrimSpace(line), " "); plugin == name {
			d.add(Check{Name: name, Status: CheckOK, Detail: firstLine(line)})
			return
		}
	}
	d.add(Check{Name: name, Status: CheckMissing, Detail: "this plugin of vagrant is not there; it runs the libvirt box", Fix: fix})
}

// wholeBuild is the disk that a build takes of which nothing is in the store.
func wholeBuild(l *lineage, standIn bool) int64 {
	s := &spec.Spec{CNI: "calico"}
	s.Default()
	r := &Resolved{Spec: s}
	if standIn {
		r.Media.StandIn = &iso.StandIn{StandIn: true}
	}
	var all []engine.Planned
	for _, st := range pipeline(r, bake.Host{}) {
		p := engine.Planned{Stage: st, Status: engine.Miss}
		if e, ok := st.(stage.PassThrough); ok && e.PassThrough() != "" {
			p.Status = engine.Empty
		}
		all = append(all, p)
	}
	_, total := newEstimator(r, l).costs(all)
	return total.DiskPeak
}

// abilities is what works here, as the table of hosts in the documentation.
func (d *doctor) abilities() []Ability {
	blocked := strings.Join(d.blocked, ", ")
	bakes := len(d.blocked) == 0
	standIn := Ability{What: "bake the box of a stand-in", Works: bakes}
	windows := Ability{What: "bake a box of Windows", Works: bakes && d.realFit && d.accel != hypervisor.Emulation}
	switch {
	case !bakes:
		standIn.Why = "not without: " + blocked
		windows.Why = standIn.Why
	case !d.realFit:
		windows.Why = "disk or memory are short"
	case d.accel == hypervisor.Emulation:
		windows.Why = "only with --allow-emulation, which takes hours"
	default:
		windows.Why = "with " + string(d.accel)
	}
	compiles := Ability{What: "compile Kubernetes", Works: d.byName["go"].Status == CheckOK}
	if !compiles.Works {
		compiles.Why = "not without a working go command"
	}
	return []Ability{windows, standIn, compiles, {What: "all that boots nothing: plan, resolve, check, catalog, cache", Works: d.byName["store"].Status == CheckOK}}
}

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/guest/winrm"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/kube"
)

const buildExample = `  # Kubernetes compiled from its source, Calico's features, Windows from the store or, the first time, from Microsoft
  wbox build --k8s v1.37.2 --cni calico

  # your own kubelet.exe, the other programs from a release
  wbox build --k8s ./bin --k8s-base v1.37.2 --iso SERVER_EVAL_x64FRE_en-us.iso -o boxes

  # what wbox.yaml in this folder asks for, with another CNI, and nothing that is not pinned
  wbox build --preset ws2022-antrea --frozen

  # use the box
  vagrant box add out/catalog.json`

const failureHelp = `

When a guest or its proof fails (exit code 5), the error names the step, the limit, the guest's last sign of
life, and a run folder with the transcript, the serial log and a screenshot. With --keep-on-failure its machine
stays up as well: wbox prints how to get in over WinRM and VNC and which file has the passwords, and waits until
Ctrl-C or SIGTERM, without a terminal and under CI too: give such a job a time limit. Then the machine is
removed, and wbox still ends with exit code 5. What else the build was doing goes on to its end meanwhile.`

func (a *app) buildCommand() *cobra.Command {
	sel := &selection{}
	cmd := &cobra.Command{
		Use:     "build",
		Short:   "Bake a box",
		Long:    "Build bakes a box. What is in the store already is not made again: see wbox plan.\nIt prints the catalog's path.\n" + selectionHelp + failureHelp,
		Example: buildExample,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.build(cmd, sel) },
	}
	f := cmd.Flags()
	selectionFlags(f, sel)
	networkFlags(f, sel)
	licenceFlags(f, sel)
	frozenFlag(f, sel)
	a.isoFlags(f)
	machineFlags(f, sel)
	f.BoolVar(&a.keepOnFailure, "keep-on-failure", false, "keep the machine of a guest that failed and say how to get in; ends with Ctrl-C")
	return cmd
}

// newBuilder makes a Builder over the real parts, and the settings of the
// Kubernetes sources.
func (a *app) newBuilder() (*builder.Builder, kube.Options, error) {
	store, err := a.storeDir()
	if err != nil {
		return nil, kube.Options{}, err
	}
	options := a.host.options()
	options.Store, options.Sink, options.KeepOnFailure = store, a.display, a.keepOnFailure
	b, err := builder.New(options)
	if err != nil {
		return nil, kube.Options{}, err
	}
	opts, err := a.kubeSettings(kube.Options{})
	return b, opts, err
}

// dial opens a WinRM connection to a guest of ours.
func dial(_ context.Context, to netip.AddrPort, access guest.Access, tls bool) (guest.Conn, error) {
	return winrm.Dial(winrm.Config{Addr: to, User: access.User, Password: guest.Secret(access.Password), TLS: tls, PinnedSHA256: access.Pin})
}

// resolve loads what was selected and resolves it; opts say for what, the
// settings come from the command line.
func (a *app) resolve(cmd *cobra.Command, sel *selection, opts builder.ResolveOptions) (*builder.Builder, *builder.Resolved, error) {
	s, pins, err := a.load(cmd, sel)
	if err != nil {
		return nil, nil, err
	}
	b, kopts, err := a.newBuilder()
	if err != nil { // without a store little can be looked up, but much can be checked
		options := a.host.options()
		options.Sink = a.display
		return nil, nil, s.Locate(fault.Check(builder.CheckWithoutStore(cmd.Context(), s, options, opts.PlanOnly), err))
	}
	opts.Kube, opts.Components, opts.Pins, opts.Offline = kopts, componentSettings(kopts), pins, a.offline
	if opts.Media, err = a.mediaOptions(); err != nil {
		return nil, nil, err
	}
	if err := a.useNetwork(cmd.Context(), s, &opts); err != nil {
		return nil, nil, err
	}
	r, err := b.Resolve(cmd.Context(), s, opts)
	return b, r, err
}

func (a *app) build(cmd *cobra.Command, sel *selection) error {
	b, r, err := a.resolve(cmd, sel, builder.ResolveOptions{})
	if err != nil {
		return err
	}
	ctx, s := cmd.Context(), r.Spec
	if err := b.Preflight(ctx, r); err != nil { // Build would, but by then the lock is written
		return s.Locate(err)
	}
	release, err := builder.LockOutput(s.Output)
	if err != nil {
		return s.Locate(err)
	}
	defer release()
	if err := a.updateLock(cmd, r.Lock); err != nil {
		return err
	}
	a.announce(r)
	built, err := b.Build(ctx, r)
	if err != nil {
		return err
	}
	p, err := b.Publish(ctx, built)
	if err != nil {
		return s.Locate(err)
	}
	return a.printBuilt(built, p)
}

// announce says what will be baked, before minutes are spent.
func (a *app) announce(r *builder.Resolved) {
	a.hint("baking %s %s: Kubernetes %s on %s, %s", r.BoxName, r.Version, r.Ref.Version, r.Edition.Name, accelerated(r.Features.Accelerator))
	if r.Media.StandIn != nil {
		a.hint("the medium is a stand-in: a small Linux guest plays Windows, and the box is good for tests only")
	}
	if r.Aged() != "" {
		a.hint("Windows is installed anew: %s", r.Aged())
	}
	a.hint("licence: %s", r.LicenceText())
	if r.GuestScripts() != "powershell" {
		a.hint("guest scripts: %s (the stand-in has no PowerShell and answers for them)", r.GuestScripts())
	}
}

// accelerated says how fast guests will run.
func accelerated(by hypervisor.Accelerator) string {
	if by == hypervisor.Emulation {
		return "in software emulation, which is slow"
	}
	return "accelerated by " + strings.ToUpper(string(by))
}

func (a *app) printBuilt(built *builder.Built, p *builder.Published) error {
	switch {
	case p.UpToDate:
		a.hint("up to date")
	default:
		a.hint("guests were booted %d times in this run; what it did is in %s", built.Boots(true), built.RunDir)
	}
	a.hint("to use the box:")
	a.hint("  vagrant box add %s", shellQuote(p.Catalog))
	if p.Network != "" {
		a.hint("copy %s beside your Vagrantfile: it sets up registries, authorities and proxy of a node", shellQuote(p.Network))
	}
	a.hint("licence: %s", p.Licence)
	if p.GuestScripts != "powershell" { // last, where it is not overlooked
		a.hint("guest scripts: %s", p.GuestScripts)
	}
	if a.format == "json" {
		enc := json.NewEncoder(a.out)
		return enc.Encode(p)
	}
	_, err := fmt.Fprintln(a.out, p.Catalog)
	return err
}

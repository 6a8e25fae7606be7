package builder

import (
	"context"
	"errors"
	"strings"

	goversion "github.com/hashicorp/go-version"
	"golang.org/x/sync/errgroup"

	"github.com/wbox-dev/wbox/builder/box"
	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/disk"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/media"
	"github.com/wbox-dev/wbox/builder/quirks"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stages/preload"
	"github.com/wbox-dev/wbox/images"
)

// Resolved is a Spec whose every name has become a digest, on a host that was
// found able to build it.
type Resolved struct {
	Spec      *spec.Spec
	Ref       kube.Ref
	Minor     quirks.Minor
	Media     iso.Media
	ISODigest string // "sha256:…"
	Edition   iso.Edition
	Features  hypervisor.Features // of this host; empty where only a plan was asked for
	BoxName   string              // OWNER/BOX
	Version   string              // of the box, such as 1.37.2.0
	Lock      *Lock               // nil without Pins

	isoSource    string         // the medium's file or URL
	pending      *media.Pending // what a build would download; a plan's only
	source       kube.Source
	cni, runtime programs // what is installed beside Kubernetes
	preload      []preload.Archive
	memoryMiB    int
	licenceClock licenceState
	disk         *disk.Tool
}

// GuestScripts says who runs the guest scripts: "powershell", or "not
// executed" where the medium is a stand-in without PowerShell, which answers
// for them.
func (r *Resolved) GuestScripts() string {
	if r.Media.StandIn != nil && r.Media.StandIn.PowerShell == "" {
		return "not executed"
	}
	return "powershell"
}

// ResolveOptions say for what a Spec is resolved.
type ResolveOptions struct {
	Kube       kube.Options      // settings of the Kubernetes sources; Base and Version are taken from the Spec
	Components component.Options // settings of the sources of CNI and containerd; Offline is that of here
	PlanOnly   bool              // nothing will run: the host and the output folder are not looked at
	Pins       Pins              // the lock that holds
	Offline    bool              // the network must not be used: what is not on this machine is an error that names it

	Images   *images.Client // Optional: what looks up and pulls the images of --preload. Default: one without a cache.
	Media    media.Options  // where Windows may come from; Offline and Sink are those of here and of the Builder
	Download bool           // download the medium although only a plan was asked for, unless the table says all that a lock needs
	Pending  bool           // plan without the medium where a build would download it, and without a lock then; not with a frozen lock
}

// Resolve defaults and checks a Spec, finds out what its names stand for and
// whether this host can build it. All problems are reported together, as one
// *fault.Preflight, and name the place in a box file where a value came from;
// nothing has been written by then.
func (b *Builder) Resolve(ctx context.Context, s *spec.Spec, opts ResolveOptions) (*Resolved, error) {
	s.Default()
	r, err := b.resolve(ctx, s, opts)
	return r, s.Locate(b.full(err, s.Output))
}

func (b *Builder) resolve(ctx context.Context, s *spec.Spec, opts ResolveOptions) (*Resolved, error) {
	r := &Resolved{Spec: s}
	problems := make([]error, 8) // one place each, so that their order is stable
	problems[0] = s.Validate()
	pinned, err := opts.Pins.read(s)
	if problems[6] = err; err != nil && opts.Pins.Frozen {
		return nil, fault.Check(problems...) // what is not pinned is not looked up either
	}
	opts.Kube.Offline, opts.Components.Offline = opts.Offline, opts.Offline
	var pending *media.Pending
	var g errgroup.Group
	g.Go(func() error {
		problems[1] = r.resolveKube(ctx, opts.Pins.request(s.K8s, pinned), opts.Kube, b.opts.Sink)
		return nil
	})
	g.Go(func() error { pending, problems[2] = b.locateMedia(ctx, r, opts, pinned); return nil })
	g.Go(func() error {
		problems[3] = r.runtime.resolve(ctx, component.ParseContainerd, s.Containerd, opts.Pins.commit(runtimePrefix, pinned), opts.Components, b.opts.Sink)
		return nil
	})
	g.Go(func() error {
		problems[7] = r.cni.resolve(ctx, component.ParseCNI, s.CNI, opts.Pins.commit(cniPrefix, pinned), opts.Components, b.opts.Sink)
		return nil
	})
	if !opts.PlanOnly {
		g.Go(func() error { problems[4] = b.probe(ctx, r); return nil })
		if problems[5] = b.checkNesting(s.Output); problems[5] == nil {
			problems[5] = checkOutput(s.Output)
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// A medium of an own URL may be a stand-in: it tells once it is here.
	if known := pending == nil || s.ISO == ""; known && !opts.PlanOnly && problems[2] == nil && problems[4] == nil {
		problems = append(problems, r.checkEmulation())
	}
	if problems[2] == nil { // only the medium tells which images run
		problems = append(problems, r.resolvePreload(ctx, opts, pinned))
	}
	if err := fault.Check(problems...); err != nil {
		return nil, err
	}
	if err := r.download(ctx, pending); err != nil { // gigabytes are fetched only once all else is well
		return nil, err
	}
	if err := errors.Join(r.name(), r.pin(opts.Pins, pinned)); err != nil {
		return nil, fault.Check(err)
	}
	if err := b.resolveLicence(ctx, r, opts.Offline); err != nil {
		return nil, err
	}
	if opts.PlanOnly {
		return r, nil
	}
	return r, r.checkEmulation()
}

// resolveKube finds out what --k8s stands for.
func (r *Resolved) resolveKube(ctx context.Context, request string, opts kube.Options, sink report.Sink) error {
	if request == "" {
		return nil // Validate has said so
	}
	opts.Base, opts.Version = r.Spec.K8sBase, r.Spec.K8sVersion
	src, err := kube.Parse(request, opts)
	if err != nil {
		return err
	}
	if r.Ref, err = src.Resolve(ctx, sink); err != nil {
		return err
	}
	r.source = src
	v, err := goversion.NewVersion(r.Ref.Version)
	if err != nil || len(v.Segments()) < 2 {
		return &fault.Problem{Class: fault.Input, Field: "--k8s-version", Value: r.Ref.Version, Why: "is not a Kubernetes version",
			Fix: "write it as v1.37.2"}
	}
	r.Minor = quirks.Minor(v.Segments()[1])
	return nil
}

// probe finds out what this host can do.
func (b *Builder) probe(ctx context.Context, r *Resolved) error {
	tool, toolErr := disk.Find("")
	r.disk = tool
	f, err := b.opts.Driver.Probe(ctx)
	r.Features = f
	if err == nil && f.AcceleratorNote != "" {
		b.opts.Sink.Emit(report.Event{Kind: report.Warning, Message: f.AcceleratorNote})
	}
	return errors.Join(toolErr, err)
}

// checkEmulation refuses what would take hours without a word.
func (r *Resolved) checkEmulation() error {
	if r.Media.StandIn != nil || r.Features.Accelerator != hypervisor.Emulation || r.Spec.AllowEmulation {
		return nil
	}
	why := "no hardware acceleration works here, and installing Windows in software emulation takes hours"
	if r.Features.AcceleratorNote != "" {
		why += " (" + r.Features.AcceleratorNote + ")"
	}
	return &fault.Problem{Class: fault.Host, Field: "acceleration", Why: why,
		Fix: "run it where KVM works, or allow it with --allow-emulation"}
}

// What a machine gets unless --memory says otherwise.
const (
	windowsMiB = 4096
	standInMiB = 2048
)

// name works out the box's name, version and memory.
func (r *Resolved) name() (err error) {
	r.BoxName = r.Spec.BoxName(r.Media.StandIn != nil)
	r.memoryMiB = windowsMiB
	if r.Media.StandIn != nil {
		r.memoryMiB = standInMiB
	}
	if r.Spec.Memory != "" {
		if r.memoryMiB, err = spec.ParseMemory(r.Spec.Memory); err != nil {
			return err
		}
	}
	r.Version, err = box.Version(r.Ref.Version, r.Spec.Revision)
	return err
}

// ShortDigest is a digest as people compare it.
func ShortDigest(d string) string {
	d = strings.TrimPrefix(d, "sha256:")
	return d[:min(12, len(d))]
}

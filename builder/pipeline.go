package builder

import (
	"fmt"
	"strings"

	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/stage"
	"github.com/wbox-dev/wbox/builder/stages/cni"
	"github.com/wbox-dev/wbox/builder/stages/componentbits"
	"github.com/wbox-dev/wbox/builder/stages/features"
	"github.com/wbox-dev/wbox/builder/stages/generalize"
	"github.com/wbox-dev/wbox/builder/stages/kubebits"
	"github.com/wbox-dev/wbox/builder/stages/libvirt"
	"github.com/wbox-dev/wbox/builder/stages/node"
	"github.com/wbox-dev/wbox/builder/stages/payload"
	"github.com/wbox-dev/wbox/builder/stages/preload"
	"github.com/wbox-dev/wbox/builder/stages/proof"
	"github.com/wbox-dev/wbox/builder/stages/runtime"
	"github.com/wbox-dev/wbox/builder/stages/updates"
	"github.com/wbox-dev/wbox/builder/stages/windows"
)

// pipeline returns THE ordered list of stages, slowest-changing first; nothing
// else decides order.
func pipeline(r *Resolved, host bake.Host) []stage.Stage {
	var (
		w         = r.windowsConfig()
		feat      = features.Config{CNI: r.Spec.CNIName()}
		run       = r.runtimeConfig()
		net       = cni.Config{CNI: r.Spec.CNIName(), Programs: r.cni.input(cni.FolderName, componentbits.CNI)}
		k8s       = node.Config{Minor: r.Minor, WindowsBuild: r.Edition.Build}
		bits      = stage.FromStage("", kubebits.Name, kubebits.Output)
		finished  = stage.FromStage("", payload.Name, payload.DiskOutput)
		clock     = stage.FromStage("", windows.Name, windows.LicenceOutput)
		isProofOf = concat(windows.Prepare(), features.Scripts(feat), runtime.Scripts(run), cni.Scripts(net), node.Scripts(k8s), generalize.Scripts())
	)
	stages := withoutNil(
		r.runtime.stage(componentbits.Runtime),                                              // where --containerd names a source
		r.cni.stage(componentbits.CNI),                                                      // where --cni does
		kubebits.New(r.source, r.Ref),                                                       // first, since it runs beside the layers
		windows.New(w, host),                                                                // the slowest by far, and the same for every Kubernetes and CNI
		updates.New(windows.Name, windows.Name, host),                                       // months apart
		features.New(feat, updates.Name, windows.Name, host),                                // need reboots; few sets of them exist
		runtime.New(run, features.Name, windows.Name, host),                                 // changes with containerd
		cni.New(net, runtime.Name, windows.Name, host),                                      // changes with the CNI
		node.New(k8s, cni.Name, windows.Name, host),                                         // changes with the Kubernetes minor
		generalize.New(node.Name, windows.Name, host),                                       // takes out what let the bake in
		payload.New(bits, stage.FromStage("", generalize.Name, bake.DiskOutput), host.Disk), // no boot: another kubelet.exe starts here
		proof.New(proof.Config{Scripts: isProofOf, Account: generalize.Account(), Files: payload.Files}, finished, bits, host), // gates publishing
		libvirt.New(r.libvirtConfig(), finished, clock, host.Disk),                                                             // beside the proof
	)
	if len(r.preload) > 0 { // beside the compile, since it waits for the network
		stages = append([]stage.Stage{preload.New(r.preload)}, stages...)
	}
	return stages
}

// runtimeConfig says which runtime the box gets, and which images lie in it.
func (r *Resolved) runtimeConfig() runtime.Config {
	c := runtime.Config{WindowsBuild: r.Edition.Build, Version: r.runtime.ref.Version, NoUnpack: r.Media.StandIn != nil,
		Programs: r.runtime.input(runtime.FolderName, componentbits.Runtime),
		Archives: stage.FromStage("images", preload.Name, preload.Output)}
	for _, i := range preload.Images(r.preload) {
		c.Images = append(c.Images, runtime.Image(i))
	}
	return c
}

// targets are the stages whose results a build is for.
func targets() []string { return []string{proof.Name, libvirt.Name} }

func concat(lists ...[]bake.Script) []bake.Script {
	var out []bake.Script
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func (r *Resolved) windowsConfig() windows.Config {
	return windows.Config{Release: r.Spec.Windows, ImageName: r.Edition.Name, ISO: r.Media.Path, ISODigest: r.ISODigest, DiskGiB: r.Spec.DiskGiB,
		Generation: r.licenceClock.generation, Activate: r.licenceClock.activate, Why: r.licenceClock.notTried}
}

// libvirtConfig is what the box tells about itself in its info.json.
func (r *Resolved) libvirtConfig() libvirt.Config {
	info := map[string]string{
		"kubernetes": r.Ref.Version,
		"cni":        r.Spec.CNIName(),
		"windows":    fmt.Sprintf("Windows Server %s (%s), build %d", r.Spec.Windows, strings.ToLower(r.Edition.InstallationType), r.Edition.Build),
		"licence":    r.licence(),
	}
	if r.Media.StandIn != nil {
		info["stand-in"] = "a small Linux guest that plays Windows: for tests only"
	}
	return libvirt.Config{CPUs: 2, MemoryMiB: 4096, Info: info}
}

// licence says under which licence the box's Windows runs.
func (r *Resolved) licence() string {
	switch {
	case r.Media.StandIn != nil:
		return "stand-in, no Windows inside"
	case r.Edition.Evaluation():
		return "evaluation"
	}
	return "volume or retail, as the medium"
}

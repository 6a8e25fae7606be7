package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/spec"
)

// selection is what build, plan and lock are asked for: flags over a box file
// over a preset.
type selection struct {
	flags  spec.Spec
	file   string // -f
	preset string
	lock   string
	frozen bool
}

// selectionHelp is the part of the commands' help that they share.
const selectionHelp = `
What is built is chosen by flags, by a box file (-f FILE, else wbox.yaml in this folder where there is
one, else none; -f "" reads none) and by a preset. Flags win over the file, the file over the preset.
Digests of all inputs are kept in wbox.lock: beside the box file, else in the output folder.`

// selectionFlags are the flags that choose what is built: the same for build,
// plan and lock.
func selectionFlags(f *pflag.FlagSet, sel *selection) {
	s := &sel.flags
	f.StringVar(&s.K8s, "k8s", "", "Kubernetes: a version (v1.37.2, stable, ci/latest), a git ref (master, pull/12345, git:REPOSITORY@REF), a source tree, a folder with kubelet.exe or a URL; see wbox kube --help")
	f.StringVar(&s.K8sBase, "k8s-base", "", "the version that programs missing from the folder of --k8s come from")
	f.StringVar(&s.K8sVersion, "k8s-version", "", "the version of the folder's kubelet.exe, where it can't be found out")
	f.StringVar(&s.CNI, "cni", "", "prepare for a CNI: none, calico, antrea or flannel (default none); to install its programs too, say where they come from: calico@REF, antrea@git:REPOSITORY@REF, antrea@PATH or ./PATH (a source tree, a folder of programs or the tar file of an image)")
	f.StringVar(&s.Containerd, "containerd", "", "containerd to install: a release (2.3.4), a git ref (main, release/2.3, git:REPOSITORY@REF), a source tree, a folder with containerd.exe and its companions, or the tar file of an image")
	f.StringSliceVar(&s.Preload, "preload", nil, "container images that lie in the box already: pause, cni (of the release that --cni names), calico@v3.32.0 and the like, nanoserver, servercore, an image's name, or an archive of images (.tar); needs --containerd")
	f.StringVar(&s.Windows, "windows", "", "Windows Server release: 2019, 2022 or 2025 (default 2022)")
	f.StringVar(&s.Edition, "edition", "", "core or desktop (default core)")
	f.StringVar(&s.ISO, "iso", "", "the Windows Server installation medium: a file, or a URL, with #sha256=DIGEST where it is pinned (default: the newest in the store, else an evaluation that is downloaded)")
	f.StringSliceVar(&s.Providers, "provider", nil, "what to make (default libvirt)")
	f.StringVar(&s.Name, "name", "", "the box's name, OWNER/BOX (default local/wbox-wsWINDOWS-CNI)")
	f.IntVar(&s.Revision, "revision", 0, "the fourth number of the box's version")
	f.IntVar(&s.DiskGiB, "disk", 0, "size of the system disk in GiB (default 64)")
	f.StringVarP(&s.Output, "output", "o", "", "folder for box and catalog (default out)")
	f.StringVarP(&sel.file, "file", "f", "", "the box file (default wbox.yaml, where it exists)")
	f.StringVar(&sel.preset, "preset", "", "fill in what is not said otherwise: "+strings.Join(spec.Presets(), ", "))
	f.StringVar(&sel.lock, "lock", "", "the lock (default wbox.lock beside the box file, else in the output folder)")
}

// licenceFlags are those of an evaluation's clock, for build and plan. They
// decide whether Windows is installed anew, and pin nothing.
func licenceFlags(f *pflag.FlagSet, sel *selection) {
	f.StringVar(&sel.flags.Activate, "activate", "", "activate an evaluation of Windows when it is installed: auto or never (default auto, and never with --offline)")
	f.IntVar(&sel.flags.LicenceDays, "licence-days", 0, "install Windows anew when its evaluation has fewer days left (default 30; of the 10 before an activation, at most 3 count)")
}

// machineFlags are about the machine that bakes. No key and no lock depends on
// them; whoever selects what to build may say them all the same.
func machineFlags(f *pflag.FlagSet, sel *selection) {
	f.IntVar(&sel.flags.CPUs, "cpus", 0, "virtual processors of the machine (default 2)")
	f.StringVar(&sel.flags.Memory, "memory", "", "memory of the machine, such as 4GiB (default 4GiB, 2GiB for a stand-in)")
	f.BoolVar(&sel.flags.AllowEmulation, "allow-emulation", false, "install real Windows without hardware acceleration, which takes hours")
}

// frozenFlag is the flag of all commands that may change a lock.
func frozenFlag(f *pflag.FlagSet, sel *selection) {
	f.BoolVar(&sel.frozen, "frozen", false, "refuse anything that is not as wbox.lock says, and leave that as it is")
}

// load reads file and preset, lays the flags over them and says where the lock
// is.
func (a *app) load(cmd *cobra.Command, sel *selection) (*spec.Spec, builder.Pins, error) {
	if !cmd.Flags().Changed("file") {
		if _, err := os.Stat(spec.DefaultFile); err == nil {
			sel.file = spec.DefaultFile
			a.hint("reading %s", sel.file)
		}
	}
	s, err := spec.Load(spec.FromFlags(&sel.flags, cmd.Flags().Changed), sel.file, sel.preset)
	if err != nil {
		return nil, builder.Pins{}, err
	}
	s.Default()
	p := builder.Pins{Path: sel.lock, Frozen: sel.frozen, Refresh: refresh(cmd)}
	switch {
	case p.Path != "":
	case sel.file != "":
		p.Path = filepath.Join(filepath.Dir(sel.file), lock.FileName)
	default:
		p.Path = filepath.Join(s.Output, lock.FileName)
	}
	return s, p, nil
}

// refresh is the command that makes the lock for the same selection.
func refresh(cmd *cobra.Command) string {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	selectionFlags(known, &selection{})
	out := []string{"wbox lock"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if known.Lookup(f.Name) == nil {
			return
		}
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		out = append(out, "--"+f.Name, shellQuote(value))
	})
	return strings.Join(out, " ")
}

// mostChanges is how many changes of a lock are printed.
const mostChanges = 24

// printChanges says how a lock differs from what holds now.
func (a *app) printChanges(l *builder.Lock, heading string) {
	a.hint("%s", heading)
	for i, c := range l.Changes {
		if i == mostChanges {
			a.hint("  … and %d more", len(l.Changes)-i)
			return
		}
		a.hint("  %s", c)
	}
}

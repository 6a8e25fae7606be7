package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/spec"
)

const bundleLong = `Bundle writes one folder from which a box is built without a network: a box file, its lock, and every file that the box
file names: the programs of Kubernetes, and those of a CNI and of containerd where --cni and --containerd name a source (all
compiled or downloaded now), and the images of --preload. Windows' installation medium is left out unless --with-iso is given: a build takes the one with the digest of the
lock from its store, where wbox iso add FILE puts it.

On the other machine: wbox build --offline --frozen -f DIR/wbox.yaml. What is not as it was bundled is refused there, by
digest. Proxies, mirrors and authorities belong to a machine and are not part of a bundle.

The bundle is checked before it appears: it is resolved from itself, without the network.
` + selectionHelp

func (a *app) bundleCommand() *cobra.Command {
	sel := &selection{}
	withISO := false
	cmd := &cobra.Command{
		Use: "bundle", Short: "Write one folder from which a box is built without a network", Long: bundleLong, Args: noArgs,
		Example: "  wbox bundle --k8s ci/latest --cni calico -o bundle\n  wbox build --offline --frozen -f bundle/wbox.yaml",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.bundle(cmd, sel, withISO) },
	}
	f := cmd.Flags()
	selectionFlags(f, sel)
	networkFlags(f, sel)
	frozenFlag(f, sel)
	a.isoFlags(f)
	f.BoolVar(&withISO, "with-iso", false, "put Windows' installation medium into the folder too")
	f.Lookup("output").Usage = "the bundle's folder, new or empty (default bundle)"
	return cmd
}

func (a *app) bundle(cmd *cobra.Command, sel *selection, withISO bool) error {
	if !cmd.Flags().Changed("output") {
		if err := cmd.Flags().Set("output", "bundle"); err != nil {
			return err
		}
	}
	dir := sel.flags.Output
	if err := builder.CheckBundle(dir); err != nil { // before minutes are spent
		return err
	}
	b, r, err := a.resolve(cmd, sel, builder.ResolveOptions{PlanOnly: true, Download: true})
	if err != nil {
		return err
	}
	made, err := b.Bundle(cmd.Context(), r, dir, withISO)
	if err != nil {
		return r.Spec.Locate(err)
	}
	if a.format == "json" {
		return a.printJSON(made)
	}
	a.hint("%s of Kubernetes %s", report.Bytes(made.Size), made.Version)
	if made.ISO == "" {
		a.hint("the medium is not in it; where it is built: wbox iso add FILE, with the digest %s", made.ISODigest)
	}
	a.hint("to use it: wbox build --offline --frozen -f %s", shellQuote(filepath.Join(dir, spec.DefaultFile)))
	_, err = fmt.Fprintln(a.out, dir)
	return err
}

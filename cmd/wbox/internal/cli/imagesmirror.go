package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/images"
)

const imagesMirrorLong = `Mirror copies every image that a cluster of a version needs to one place in a registry, under the names that kubeadm
--image-repository asks for: "+" becomes "_", and coredns gets both of its paths. All platforms are copied, nothing is
written anew, and the registry is asked afterwards whether it has the same digest. What is there already is not sent, what
the registry has elsewhere is mounted, and a name appears last: a mirror that is interrupted can be gone on with by running it
again. Where the registry of CI builds no longer has an image, the archive of the build is imported, for linux/amd64.

It prints each name with its digest.`

// mirrorFlags are what mirror is asked for beside the images.
type mirrorFlags struct {
	images    imageFlags
	to        string
	platforms []string
	foreign   string
}

func (a *app) imagesMirrorCommand() *cobra.Command {
	m := &mirrorFlags{}
	cmd := &cobra.Command{
		Use: "mirror", Short: "Copy every image that a cluster of a version needs to one registry", Long: imagesMirrorLong, Args: noArgs,
		Example: "  wbox images mirror --k8s ci/latest --to registry.example.com/k8s\n" +
			"  wbox images mirror --k8s v1.37.2 --windows 2022 --to localhost:5000 --platform linux/amd64,windows/amd64:20348",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.imagesMirror(cmd, m) },
	}
	f := cmd.Flags()
	m.images.selectImages(f)
	m.images.reachRegistries(f)
	f.StringVar(&m.to, "to", "", "where to: REGISTRY[/PATH]")
	f.StringSliceVar(&m.platforms, "platform", nil, "only these, such as linux/amd64,windows/amd64:20348, of images that are made for several; the digest is then another one (default all)")
	f.StringVar(&m.foreign, "foreign-layers", string(images.KeepURL), "layers that may not be distributed: keep (they stay where the image says), copy or refuse")
	return cmd
}

// options checks what can be checked without asking anybody.
func (m *mirrorFlags) options(c *images.Client) (o images.MirrorOptions, err error) {
	if m.to == "" {
		return o, &fault.Problem{Class: fault.Usage, Field: "--to", Why: "is missing", Fix: "name a registry, such as --to registry.example.com/k8s"}
	}
	if o.To, err = c.ParsePrefix("--to", m.to); err != nil {
		return o, err
	}
	for _, text := range m.platforms {
		p, err := images.ParsePlatform("--platform", text)
		if err != nil {
			return o, err
		}
		o.Copy.Platforms = append(o.Copy.Platforms, p)
	}
	switch o.Copy.Foreign = images.Foreign(m.foreign); o.Copy.Foreign {
	case images.KeepURL, images.CopyForeign, images.RefuseForeign:
		return o, nil
	}
	return o, &fault.Problem{Class: fault.Usage, Field: "--foreign-layers", Value: m.foreign, Why: "is not known", Fix: "use keep, copy or refuse"}
}

// mirroredImages is the JSON form of what a mirror did.
type mirroredImages struct {
	Version string            `json:"version"`
	To      string            `json:"to"`
	Kubeadm string            `json:"kubeadm"` // the flags with which kubeadm asks for these
	Images  []images.Mirrored `json:"images"`  // those that are there, also where others failed
}

func (a *app) imagesMirror(cmd *cobra.Command, m *mirrorFlags) error {
	if a.offline {
		return &fault.Problem{Class: fault.Network, Field: "wbox images mirror", Why: "needs the network, which must not be used (--offline)", Fix: "leave --offline out"}
	}
	c, err := a.imageClient(&m.images)
	if err != nil {
		return err
	}
	o, err := m.options(c)
	if err != nil {
		return err
	}
	w, err := a.wantedImages(cmd, &m.images)
	if err != nil {
		return err
	}
	o.Instead = func(ctx context.Context, img images.Image) (images.Source, error) { return a.archived(ctx, w, img) }
	got, err := c.Mirror(cmd.Context(), w.list, o)
	if perr := a.printMirrored(mirroredImages{Version: w.ref.Version, To: o.To, Kubeadm: w.kubeadmFlags(o.To), Images: got}); perr != nil {
		return errors.Join(err, perr)
	}
	if err == nil {
		a.hint("to use it: kubeadm init %s", w.kubeadmFlags(o.To))
	}
	return err
}

// archived is the image of a CI build in the archive that the build has beside
// its programs.
func (a *app) archived(ctx context.Context, w wanted, img images.Image) (images.Source, error) {
	if publishedAs(w.ref) != images.CIBuild || img.Paths[0] != img.Component+":"+images.Tag(w.ref.Version) {
		return nil, nil
	}
	path, err := kube.ImageArchive(ctx, w.src, w.ref, img.Component, a.display)
	if err != nil {
		return nil, err
	}
	return images.Archive(path, img.Component, images.Tag(w.ref.Version))
}

func (a *app) printMirrored(m mirroredImages) error {
	if m.Images == nil {
		m.Images = []images.Mirrored{}
	}
	if a.format == "json" {
		return a.printJSON(m)
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	var existing, mounted int
	var sent int64
	for _, i := range m.Images {
		what := "copied"
		if i.Existing {
			what = "was there"
			existing++
		}
		mounted += i.Mounted
		sent += i.Bytes
		if _, err := fmt.Fprintf(t, "%s\t%s\t%s\n", i.To, i.Digest, what); err != nil {
			return err
		}
	}
	if len(m.Images) > 0 {
		a.hint("%d names, %d were there already; %d blobs mounted, %s sent", len(m.Images), existing, mounted, report.Bytes(sent))
	}
	return t.Flush()
}

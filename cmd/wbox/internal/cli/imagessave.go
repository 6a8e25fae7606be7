package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/archive"
)

const imagesSaveLong = `Save writes every image that a cluster of a version needs on one platform into one file, under the names that kubeadm,
kubelet and the CNI's manifest ask for. docker load, ctr -n k8s.io images import, podman load and skopeo take the file as it
is. Nothing is written anew: every manifest and layer keeps its digest. With --platform all the file holds whole indexes, which
ctr, podman and skopeo take.

The file appears when it is complete. What nobody publishes is left out and said; wbox images build makes it.`

// imagesSaveFlags are what save is asked for beside the images.
type imagesSaveFlags struct {
	images   imageFlags
	platform string
	output   string
}

// allPlatforms is the value of --platform for whole indexes.
const allPlatforms = "all"

func (a *app) imagesSaveCommand() *cobra.Command {
	s := &imagesSaveFlags{}
	cmd := &cobra.Command{
		Use: "save", Short: "Write every image that a cluster of a version needs into one file", Long: imagesSaveLong, Args: noArgs,
		Example: "  wbox images save --k8s v1.37.2 -o images.tar\n  wbox images save --k8s ci/latest --windows 2025 --platform windows/amd64:26100 -o windows.tar\n" +
			"  ctr -n k8s.io images import images.tar",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.imagesSave(cmd, s) },
	}
	f := cmd.Flags()
	s.images.selectImages(f)
	s.images.reachRegistries(f)
	f.StringVar(&s.images.cluster.Repository, "image-repository", "", "the repository that kubeadm is told to use, for the names (default "+images.DefaultRelease+")")
	f.StringVar(&s.platform, "platform", "linux/amd64", "the platform, such as linux/arm64 or windows/amd64:20348; all for whole indexes")
	f.StringVarP(&s.output, "output", "o", "images.tar", "the file")
	return cmd
}

// savedImages is the JSON form of what save wrote.
type savedImages struct {
	Version string          `json:"version"`
	File    string          `json:"file"`
	Kubeadm string          `json:"kubeadm"`
	Images  []archive.Saved `json:"images"`
	Skipped []string        `json:"skipped,omitempty"`
}

func (a *app) imagesSave(cmd *cobra.Command, s *imagesSaveFlags) error {
	var opts archive.Options
	if s.platform != allPlatforms {
		p, err := images.ParsePlatform("--platform", s.platform)
		if err != nil {
			return err
		}
		opts.Platforms = []images.Platform{p}
	}
	if a.offline {
		return &fault.Problem{Class: fault.Network, Field: "wbox images save", Why: "needs the network, which must not be used (--offline)", Fix: "leave --offline out"}
	}
	if err := archive.Check(s.output); err != nil {
		return err
	}
	c, err := a.imageClient(&s.images)
	if err != nil {
		return err
	}
	w, err := a.wantedImages(cmd, &s.images)
	if err != nil {
		return err
	}
	entries, skipped, err := a.entriesToSave(cmd.Context(), c, w, opts.Platforms)
	if err != nil {
		return err
	}
	saved, err := archive.Save(cmd.Context(), s.output, entries, opts)
	if err != nil {
		return err
	}
	return a.printSaved(savedImages{Version: w.ref.Version, File: s.output, Kubeadm: w.kubeadmFlags(s.images.cluster.Repository), Images: saved, Skipped: skipped})
}

// entriesToSave finds a source for each image of the list that is for the
// platform. All that can't be had is reported together.
func (a *app) entriesToSave(ctx context.Context, c *images.Client, w wanted, platforms []images.Platform) (entries []archive.Entry, skipped []string, err error) {
	var problems []error
	for _, img := range w.list {
		switch {
		case len(platforms) > 0 && !neededOn(img, platforms[0].OS):
			continue
		case img.Source == "":
			skipped = append(skipped, img.Asked+" is published nowhere, so it is not in the file; wbox images build makes it")
			continue
		}
		src, err := a.sourceToSave(ctx, c, w, img)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		entries = append(entries, archive.Entry{Names: []string{img.Asked}, Source: src})
	}
	return entries, skipped, fault.Check(problems...)
}

// neededOn says whether nodes of a system pull an image. The sandbox image is
// one for all systems.
func neededOn(img images.Image, system string) bool {
	return img.OS == system || img.OS == "" && (system != "windows" || img.Component == "pause")
}

// sourceToSave is where an image is: its registry, or where that no longer has
// it the archive of the CI build.
func (a *app) sourceToSave(ctx context.Context, c *images.Client, w wanted, img images.Image) (images.Source, error) {
	ref, err := c.Parse("image", img.Source)
	if err != nil {
		return nil, err
	}
	src := c.Remote(ref)
	_, err = src.Root(ctx)
	if err == nil || fault.ClassOf(err) != fault.Input {
		return src, err
	}
	other, oerr := a.archived(ctx, w, img)
	if oerr != nil || other == nil {
		return nil, errors.Join(err, oerr)
	}
	a.display.Emit(report.Event{Kind: report.Warning, Message: fmt.Sprintf("%s is gone; using %s, which is for one platform", img.Source, other)})
	return other, nil
}

func (a *app) printSaved(s savedImages) error {
	for _, text := range s.Skipped {
		a.hint("%s", text)
	}
	if a.format == "json" {
		return a.printJSON(s)
	}
	var size int64
	for _, i := range s.Images {
		size += i.Size
		a.hint("%s %s", i.Names[0], builder.ShortDigest(i.Digest))
	}
	a.hint("%d images, %s; to use it: ctr -n k8s.io images import %s", len(s.Images), report.Bytes(size), shellQuote(s.File))
	_, err := fmt.Fprintln(a.out, s.File)
	return err
}

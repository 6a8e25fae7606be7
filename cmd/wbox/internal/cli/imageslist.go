package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/images"
)

const imagesListLong = `List prints every image that a cluster of a version needs: the name that kubeadm, kubelet or the CNI's manifest asks
for, and where it is pulled from if that is another place. With --image-repository the names are those that kubeadm asks
that repository for. It asks no registry.`

func (a *app) imagesListCommand() *cobra.Command {
	i := &imageFlags{}
	cmd := &cobra.Command{
		Use: "list", Short: "Print every image that a cluster of a version needs, and under which name", Long: imagesListLong, Args: noArgs,
		Example: "  wbox images list --k8s ci/latest\n  wbox images list --k8s v1.37.2 --windows 2025 --cni calico@v3.32.0 --image-repository registry.example.com/k8s",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.imagesList(cmd, i) },
	}
	i.selectImages(cmd.Flags())
	cmd.Flags().StringVar(&i.cluster.Repository, "image-repository", "", "the repository that kubeadm is told to use (default "+images.DefaultRelease+")")
	i.jobs, i.budget = images.DefaultJobs, images.DefaultBudget
	return cmd
}

// listedImages is the JSON form of a list.
type listedImages struct {
	Version   string           `json:"version"`
	Commit    string           `json:"commit,omitempty"`
	Published images.Published `json:"published"` // release, ci or none
	Kubeadm   string           `json:"kubeadm"`   // the flags with which kubeadm asks for these
	Tags      kube.ImageTags   `json:"tags"`
	Images    []images.Image   `json:"images"`
}

func (a *app) imagesList(cmd *cobra.Command, i *imageFlags) error {
	if _, err := a.imageClient(i); err != nil { // checks the names of places
		return err
	}
	w, err := a.wantedImages(cmd, i)
	if err != nil {
		return err
	}
	flags := w.kubeadmFlags(i.cluster.Repository)
	a.hint("the names are those of kubeadm with %s", flags)
	a.hint("the tags of etcd, coredns and pause are from %s", w.tags.From)
	published := publishedAs(w.ref)
	if published == images.Unpublished {
		a.hint("%s is no release and no CI build, so nobody publishes its own images; wbox images build makes them", w.ref.Version)
	}
	if a.format == "json" {
		return a.printJSON(listedImages{Version: w.ref.Version, Commit: w.ref.Commit, Published: published, Kubeadm: flags, Tags: w.tags, Images: w.list})
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, img := range w.list {
		notes := []string{img.Asked}
		switch {
		case img.Source == "":
			notes = append(notes, "not published")
		case img.Source != img.Asked:
			notes = append(notes, "from "+img.Source)
		}
		if img.OS == "windows" {
			notes = append(notes, "for Windows")
		}
		if _, err := fmt.Fprintln(t, strings.Join(notes, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

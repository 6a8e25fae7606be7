package cli

import (
	"cmp"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/network"
	"github.com/wbox-dev/wbox/builder/quirks"
	"github.com/wbox-dev/wbox/images"
)

// imageFlags are what list and mirror are asked for.
type imageFlags struct {
	k8s     string
	opts    kube.Options
	cluster images.Cluster
	cni     string
	net     network.Settings

	plainHTTP []string
	budget    time.Duration
	jobs      int
}

const imagesLong = `Images names, copies and keeps the container images that a cluster of one version of Kubernetes needs.
The tags of etcd, coredns and pause are those that kubeadm of exactly that version asks for.

Credentials come from ` + images.AuthVariable + ` (the content of Docker's config.json) and from where docker login,
podman login and their credential helpers keep them.`

func (a *app) imagesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "images", Short: "List, copy, save and make the container images that a cluster needs", Long: imagesLong, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.imagesListCommand(), a.imagesMirrorCommand(), a.imagesSaveCommand(), a.imagesBuildCommand())
	return cmd
}

// selectImages registers the flags that choose images and where they come from.
func (i *imageFlags) selectImages(f *pflag.FlagSet) {
	f.StringVar(&i.k8s, "k8s", "", "Kubernetes: a version (v1.37.2, stable, ci/latest), a git ref, a source tree or a folder with kubelet.exe; see wbox kube --help")
	f.StringVar(&i.opts.Version, "k8s-version", "", "the version, where it can't be found out")
	f.StringVar(&i.cni, "cni", "", "also the images of a CNI: calico@vX.Y.Z, antrea@vX.Y.Z, or a file with its manifest (default none)")
	f.StringVar(&i.cluster.Windows, "windows", "", "also what Windows nodes need: 2019, 2022 or 2025 (default: no Windows)")
	b := &i.cluster.Bases
	f.StringVar(&b.Release, "release-registry", os.Getenv("WBOX_RELEASE_REGISTRY"), "where releases are pulled from (default "+images.DefaultRelease+"; env WBOX_RELEASE_REGISTRY)")
	f.StringVar(&b.CI, "ci-registry", os.Getenv("WBOX_CI_REGISTRY"), "where CI builds are pulled from (default "+images.DefaultCI+"; env WBOX_CI_REGISTRY)")
	f.StringVar(&b.Microsoft, "microsoft-registry", os.Getenv("WBOX_MICROSOFT_REGISTRY"), "where Windows base images are pulled from (default "+images.DefaultMicrosoft+"; env WBOX_MICROSOFT_REGISTRY)")
	f.StringVar(&b.Mirror, "from", "", "pull everything from REGISTRY[/PATH], which an earlier mirror has filled")
	f.StringVar(&i.net.Proxy, "proxy", "", "the HTTP proxy, such as http://proxy.example.com:3128 (default: HTTPS_PROXY)")
	f.StringSliceVar(&i.net.NoProxy, "no-proxy", nil, "hosts, domains and networks that are reached without the proxy")
	f.StringArrayVar(&i.net.ExtraCAs, "extra-ca", nil, "a file of certificates (PEM) to trust too; may be repeated")
}

// reachRegistries registers the flags of commands that talk to registries.
func (i *imageFlags) reachRegistries(f *pflag.FlagSet) {
	f.StringSliceVar(&i.plainHTTP, "plain-http", nil, "registries (HOST:PORT) without TLS; those on this machine are found out")
	f.DurationVar(&i.budget, "retry-budget", images.DefaultBudget, "how long registries that are busy or broken are waited for, all pauses together")
	f.IntVar(&i.jobs, "jobs", images.DefaultJobs, "requests at once")
}

// client makes the client for registries, and checks the places of the bases.
func (a *app) imageClient(i *imageFlags) (*images.Client, error) {
	if i.jobs < 1 || i.jobs > 256 {
		return nil, &fault.Problem{Class: fault.Usage, Field: "--jobs", Why: "is out of range", Fix: "use 1 to 256"}
	}
	if i.budget < 0 {
		return nil, &fault.Problem{Class: fault.Usage, Field: "--retry-budget", Value: i.budget.String(), Why: "is negative", Fix: "give a duration such as 5m"}
	}
	if err := i.net.Validate(); err != nil {
		return nil, err
	}
	proxy, roots, err := i.net.Route()
	if err != nil {
		return nil, err
	}
	cache, err := a.openCache()
	if err != nil {
		return nil, err
	}
	var transport http.RoundTripper = images.NewTransport(proxy, roots, i.jobs)
	c := images.NewClient(images.ClientOptions{Keychain: images.DefaultKeychain(os.Getenv(images.AuthVariable)), Transport: transport, PlainHTTP: i.plainHTTP,
		Budget: max(i.budget, time.Nanosecond), Jobs: i.jobs, Cache: cache.Images(), Sink: a.display, Agent: "wbox/" + version})
	b := &i.cluster.Bases
	for _, p := range []struct {
		flag string
		to   *string
	}{{"--release-registry", &b.Release}, {"--ci-registry", &b.CI}, {"--microsoft-registry", &b.Microsoft}, {"--from", &b.Mirror}, {"--image-repository", &i.cluster.Repository}} {
		if *p.to == "" {
			continue
		}
		if *p.to, err = c.ParsePrefix(p.flag, *p.to); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// wanted is the cluster that was asked for and what it needs.
type wanted struct {
	src  kube.Source
	ref  kube.Ref
	tags kube.ImageTags
	list []images.Image
}

// wantedImages resolves the version and lists what it needs.
func (a *app) wantedImages(cmd *cobra.Command, i *imageFlags) (w wanted, err error) {
	if i.k8s == "" {
		return w, &fault.Problem{Class: fault.Usage, Field: "--k8s", Why: "is missing", Fix: "name a version, such as --k8s v1.37.2"}
	}
	// What can be refused at once is, before anything is downloaded.
	if i.cluster.CNI, err = images.ParseCNI(i.cni, i.cluster.Windows != ""); err != nil {
		return w, err
	}
	i.cluster.WindowsPause = quirks.PauseImage(images.HostBuild(i.cluster.Windows))
	draft := i.cluster
	draft.Version, draft.Published, draft.Etcd, draft.CoreDNS, draft.Pause = "v1.0.0", images.Released, "1", "1", "1"
	if _, err := images.List(draft); err != nil {
		return w, err
	}
	if i.net.Proxy != "" || len(i.net.ExtraCAs) > 0 {
		if i.opts.Transport, err = i.net.Transport(); err != nil {
			return w, err
		}
	}
	k := &kubeFlags{opts: i.opts}
	if w.src, w.ref, err = a.resolveKube(cmd, k, i.k8s); err != nil {
		return w, err
	}
	if w.tags, err = kube.ImageTagsOf(cmd.Context(), w.src, w.ref, k.opts, a.display); err != nil {
		return w, err
	}
	c := &i.cluster
	c.Version, c.Published = w.ref.Version, publishedAs(w.ref)
	c.Etcd, c.CoreDNS, c.Pause, c.TagsFrom = w.tags.Etcd, w.tags.CoreDNS, w.tags.Pause, w.tags.From
	w.list, err = images.List(*c)
	return w, err
}

// publishedAs says where the images of a ref are published: of a commit that is
// no release nowhere.
func publishedAs(ref kube.Ref) images.Published {
	switch {
	case ref.Source == "ci":
		return images.CIBuild
	case semver.Build(ref.Version) == "" && ref.TreeState != "dirty":
		return images.Released
	}
	return images.Unpublished
}

// kubeadmVersion is what to tell kubeadm, exactly: a marker would be resolved
// anew, and to another version perhaps.
func (w wanted) kubeadmVersion() string {
	if publishedAs(w.ref) == images.CIBuild {
		return "ci/" + w.ref.Version
	}
	return w.ref.Version
}

// kubeadmFlags are the flags with which kubeadm asks for these images.
func (w wanted) kubeadmFlags(repository string) string {
	flags := []string{"--kubernetes-version", shellQuote(w.kubeadmVersion())}
	if cmp.Or(repository, images.DefaultRelease) != images.DefaultRelease {
		flags = append(flags, "--image-repository", shellQuote(repository))
	}
	return strings.Join(flags, " ")
}

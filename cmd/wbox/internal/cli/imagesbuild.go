package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	goversion "github.com/hashicorp/go-version"
	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/quirks"
	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/build"
	"github.com/wbox-dev/wbox/images/hostprocess"
)

const imagesBuildLong = `Build makes the images of one ref of Kubernetes that nobody publishes, without Docker:

  kube-apiserver, kube-controller-manager,   static programs on an empty base, with the paths, the starter
  kube-scheduler (linux)                     and the rights of the official images
  kube-proxy (linux)                         with --proxy-base only: it calls iptables and nft, which an
                                             empty base lacks
  kube-proxy (windows)                       for HostProcess containers, under the name that the manifest of
                                             sig-windows-tools asks for
  antrea-windows; calico's node-windows      with --cni, of programs that lie in a folder, under the names that
  and cni-windows                            the projects' manifests ask for

The same programs give the same digests everywhere. Images say that they were made when the commit was; SOURCE_DATE_EPOCH
says another time. Windows images have no os.version, so that every Windows Server runs them.

An empty base has no certificates of authorities: kubeadm mounts those of the host.

The output is a folder with linux.tar and windows.tar, which docker load and ctr -n k8s.io images import take, and with
patches that make the projects' manifests use the images; or, for a name that ends in .tar, one file with all images.`

// imagesBuildFlags are what build is asked for.
type imagesBuildFlags struct {
	images     imageFlags
	platforms  []string
	cni        string
	cniVersion string
	base       string
	proxyBase  string
	repository string
	to         string
	output     string
}

func (a *app) imagesBuildCommand() *cobra.Command {
	b := &imagesBuildFlags{}
	cmd := &cobra.Command{
		Use: "build", Short: "Make the images of a ref that nobody publishes", Long: imagesBuildLong, Args: noArgs,
		Example: "  wbox images build --k8s pull/12345 -o images\n" +
			"  wbox images build --k8s master --platform linux/amd64,linux/arm64,windows/amd64 --to registry.example.com/k8s\n" +
			"  wbox images build --k8s v1.37.2 --platform windows/amd64 --cni antrea@./antrea/bin --cni-version v2.7.0",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.imagesBuild(cmd, b) },
	}
	f := cmd.Flags()
	f.StringVar(&b.images.k8s, "k8s", "", "Kubernetes: a version, a git ref, a source tree, or with --platform windows/amd64 a folder with kube-proxy.exe; see wbox kube --help")
	f.StringVar(&b.images.opts.Version, "k8s-version", "", "the version, where it can't be found out")
	f.StringVar(&b.images.opts.Base, "k8s-base", "", "the version that programs missing from a folder come from")
	f.StringSliceVar(&b.platforms, "platform", []string{"linux/amd64", "windows/amd64"}, "what to make images for: linux/amd64, linux/arm64, windows/amd64; several of Linux give one name for all")
	f.StringVar(&b.cni, "cni", "", "also the Windows images of a CNI: antrea@REF, antrea@./PATH or calico@./PATH (a source tree, or a folder with its programs and scripts)")
	f.StringVar(&b.cniVersion, "cni-version", "", "the tag of the CNI's images (default: the version of its source)")
	f.StringVar(&b.repository, "image-repository", "", "what the names of the control plane's images begin with (default "+images.DefaultRelease+")")
	f.StringVar(&b.proxyBase, "proxy-base", "", "the image that kube-proxy for Linux is put on, such as registry.k8s.io/build-image/distroless-iptables:TAG")
	f.StringVar(&b.base, "base", "", "the image that Windows images are put on, such as "+hostprocess.PublishedBase+" (default: made here)")
	f.StringVar(&b.to, "to", "", "also copy the images to REGISTRY[/PATH]")
	f.StringVarP(&b.output, "output", "o", "images", "folder, or a file that ends in .tar")
	b.images.reachRegistries(f)
	return cmd
}

// imagesPlan is what the flags ask for, checked.
type imagesPlan struct {
	linux   []string // processors
	windows bool
	plugin  *component.Request // nil: none
	created time.Time          // zero: not said
}

func (p imagesPlan) linuxPlatforms() []images.Platform {
	var out []images.Platform
	for _, arch := range p.linux {
		out = append(out, images.Platform{OS: "linux", Architecture: arch})
	}
	return out
}

// check reads the flags; it asks nobody.
func (b *imagesBuildFlags) check(getenv func(string) string) (p imagesPlan, err error) {
	for _, text := range b.platforms {
		switch text {
		case "linux/amd64", "linux/arm64":
			p.linux = append(p.linux, strings.TrimPrefix(text, "linux/"))
		case "windows/amd64":
			p.windows = true
		default:
			return p, &fault.Problem{Class: fault.Usage, Field: "--platform", Value: text, Why: "is none that images are made for", Fix: "use linux/amd64, linux/arm64 or windows/amd64"}
		}
	}
	slices.Sort(p.linux)
	p.linux = slices.Compact(p.linux)
	if p.plugin, err = b.plugin(p.windows); err != nil {
		return p, err
	}
	if b.images.k8s == "" && p.plugin == nil {
		return p, &fault.Problem{Class: fault.Usage, Field: "--k8s", Why: "is missing", Fix: "name a version, such as --k8s v1.37.2, or a CNI with --cni"}
	}
	if text := getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds < 0 {
			return p, &fault.Problem{Class: fault.Usage, Field: "SOURCE_DATE_EPOCH", Value: text, Why: "is no number of seconds since 1970", Fix: "set it to one, or unset it"}
		}
		p.created = time.Unix(seconds, 0).UTC()
	}
	return p, nil
}

// builtImages is the JSON form of what build made.
type builtImages struct {
	Version string        `json:"version,omitempty"`
	Commit  string        `json:"commit,omitempty"`
	Created time.Time     `json:"created"`
	Output  []string      `json:"files"`
	Images  []build.Image `json:"images"`
	Skipped []string      `json:"skipped,omitempty"`
}

func (a *app) imagesBuild(cmd *cobra.Command, b *imagesBuildFlags) error {
	plan, err := b.check(os.Getenv)
	if err != nil {
		return err
	}
	out, err := newImagesOutput(b.output)
	if err != nil {
		return err
	}
	for _, r := range [][2]string{{"--to", b.to}, {"--base", b.base}, {"--proxy-base", b.proxyBase}} {
		if a.offline && r[1] != "" {
			return &fault.Problem{Class: fault.Network, Field: r[0], Value: r[1], Why: "needs the network, which must not be used (--offline)", Fix: "leave one of the two out"}
		}
	}
	c, err := a.imageClient(&b.images)
	if err != nil {
		return err
	}
	if b.to != "" {
		if b.to, err = c.ParsePrefix("--to", b.to); err != nil {
			return err
		}
	}
	r := build.Request{Created: plan.created}
	if err := b.bases(cmd.Context(), c, &r, plan); err != nil {
		return err
	}
	store, err := a.storeDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(store, 0o755); err != nil {
		return &fault.Problem{Class: fault.Host, Field: "--store", Value: store, Why: "can't be made", Err: err, Fix: "name another folder with --store or WBOX_STORE"}
	}
	sweepImages(store, time.Now())
	if r.Dir, err = os.MkdirTemp(store, imagesTemp); err != nil {
		return fmt.Errorf("making a folder for the images: %w", err)
	}
	defer os.RemoveAll(r.Dir)
	if err := a.programsOfImages(cmd, b, plan, &r); err != nil {
		return err
	}
	a.display.Say("making images")
	made, err := build.Build(cmd.Context(), r)
	if err != nil {
		return err
	}
	files, err := out.write(cmd.Context(), made, r.Created)
	if err != nil {
		return err
	}
	if b.to != "" {
		if err := pushImages(cmd.Context(), c, b.to, made); err != nil {
			return err
		}
	}
	return a.printImages(builtImages{Version: r.Version, Commit: r.Revision, Created: r.Created, Output: files, Images: made.Images, Skipped: made.Skipped})
}

// imagesTemp begins the names of folders in the store where images are made.
const imagesTemp = "images-"

// sweepImages removes what killed runs left: those folders that nobody has
// touched for a day. One that can't be removed is left to the next run.
func sweepImages(store string, now time.Time) {
	left, err := filepath.Glob(filepath.Join(store, imagesTemp+"*"))
	if err != nil {
		return // the store's own name is no pattern
	}
	for _, dir := range left {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() && now.Sub(fi.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(dir)
		}
	}
}

// bases finds the images that others are put on.
func (b *imagesBuildFlags) bases(ctx context.Context, c *images.Client, r *build.Request, plan imagesPlan) error {
	if len(plan.linux) > 0 && b.images.k8s != "" {
		r.Linux = &build.Linux{Folders: map[string]string{}, Repository: b.repository}
	}
	for _, base := range []struct {
		flag, text, fix string
		used            bool
		platforms       []images.Platform
		set             func(images.Source)
	}{
		{"--base", b.base, "add windows/amd64 to --platform, or leave it out", plan.windows, []images.Platform{{OS: "windows", Architecture: "amd64"}}, func(s images.Source) { r.Base = s }},
		{"--proxy-base", b.proxyBase, "add linux/amd64 to --platform, or leave it out", r.Linux != nil, plan.linuxPlatforms(), func(s images.Source) { r.Linux.ProxyBase = s }},
	} {
		switch {
		case base.text == "":
		case !base.used:
			return &fault.Problem{Class: fault.Usage, Field: base.flag, Value: base.text, Why: "is for images that were not asked for", Fix: base.fix}
		default:
			ref, err := c.Parse(base.flag, base.text)
			if err != nil {
				return err
			}
			src := c.Remote(ref)
			if _, err := images.Select(ctx, src, base.platforms); err != nil { // before minutes are spent
				return err
			}
			base.set(src)
		}
	}
	return nil
}

// programsOfImages gets the programs that the images are made of: those for
// Windows as for a box, and for each processor those of a control plane.
func (a *app) programsOfImages(cmd *cobra.Command, b *imagesBuildFlags, plan imagesPlan, r *build.Request) error {
	ref, err := a.kubeOfImages(cmd, b, plan, r)
	if err != nil {
		return err
	}
	if plan.plugin != nil {
		pref, err := a.pluginOfImages(cmd.Context(), b, *plan.plugin, r)
		if err != nil {
			return err
		}
		if b.images.k8s == "" {
			ref = pref
		}
	}
	if r.Created.IsZero() {
		r.Created = builtAt(ref)
	}
	return nil
}

// kubeOfImages gets the programs of Kubernetes.
func (a *app) kubeOfImages(cmd *cobra.Command, b *imagesBuildFlags, plan imagesPlan, r *build.Request) (ref kube.Ref, err error) {
	if b.images.k8s == "" {
		return ref, nil
	}
	get := func(opts kube.Options, dir string) error {
		k := &kubeFlags{opts: opts}
		src, got, err := a.resolveKube(cmd, k, b.images.k8s)
		if err != nil {
			return err
		}
		if ref.Version != "" && (got.Version != ref.Version || got.Commit != ref.Commit) {
			return &fault.Problem{Class: fault.Input, Field: "--k8s", Value: b.images.k8s, Why: "stood for " + ref.Version + " first and now for " + got.Version, Fix: "run it again, or name a version"}
		}
		ref = got
		_, _, err = kube.Get(cmd.Context(), src, got, k.opts, dir, a.display)
		return err
	}
	for _, arch := range plan.linux {
		opts := b.images.opts
		opts.ControlPlane = arch
		r.Linux.Folders[arch] = filepath.Join(r.Dir, "linux-"+arch)
		if err := get(opts, r.Linux.Folders[arch]); err != nil {
			return ref, err
		}
	}
	if plan.windows {
		dir := filepath.Join(r.Dir, "windows")
		if err := get(b.images.opts, dir); err != nil {
			return ref, err
		}
		r.KubeProxy = filepath.Join(dir, kube.KubeProxy+".exe")
	}
	r.Version, r.Revision = ref.Version, ref.Commit
	if v, err := goversion.NewVersion(ref.Version); err == nil && len(v.Segments()) > 1 {
		r.FeatureGates = quirks.Minor(v.Segments()[1]).DSRFeatureGates()
	}
	return ref, nil
}

// builtAt is when an image of a ref says that it was made: when its commit was,
// and where that isn't known at the beginning of 1970, so that it is the same
// every time.
func builtAt(ref kube.Ref) time.Time {
	if t, err := time.Parse(time.RFC3339, ref.BuildDate); err == nil {
		return t.UTC()
	}
	return time.Unix(0, 0).UTC()
}

// pushImages copies the images to a registry, each under the part of its name
// behind its own registry.
func pushImages(ctx context.Context, c *images.Client, prefix string, made *build.Result) error {
	for _, i := range made.Images {
		_, path, _ := strings.Cut(i.Name, "/")
		to, err := c.Parse("--to", prefix+"/"+path)
		if err != nil {
			return err
		}
		if _, err := c.Copy(ctx, i.Source, to, images.CopyOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printImages(b builtImages) error {
	for _, s := range b.Skipped {
		a.hint("%s", s)
	}
	if a.format == "json" {
		return a.printJSON(b)
	}
	for _, i := range b.Images {
		a.hint("%s (%s) %s", i.Name, strings.Join(i.Platforms, ", "), builder.ShortDigest(i.Digest))
	}
	for _, f := range b.Output {
		if _, err := fmt.Fprintln(a.out, f); err != nil {
			return err
		}
	}
	return nil
}

package images

import (
	"regexp"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Where Kubernetes and Microsoft publish images.
const (
	DefaultRelease   = "registry.k8s.io"              // releases; kubeadm's default repository
	DefaultCI        = "gcr.io/k8s-staging-ci-images" // CI builds; what kubeadm takes for ci/ versions
	DefaultMicrosoft = "mcr.microsoft.com"            // Windows base images
)

// Bases are the places that images are pulled from instead of the usual ones.
type Bases struct {
	Release   string // Optional: default DefaultRelease
	CI        string // Optional: default DefaultCI
	Microsoft string // Optional: default DefaultMicrosoft
	Mirror    string // Optional: a place that Mirror has filled; then everything comes from there
}

// Published says whether and where somebody publishes the images of a version.
type Published string

// The kinds of versions.
const (
	Released    Published = "release" // in the registry of releases
	CIBuild     Published = "ci"      // in that of CI builds, for some months
	Unpublished Published = "none"    // a commit or changed tree: nowhere
)

// Cluster is what decides which images a cluster needs.
type Cluster struct {
	Version   string    // Required: of Kubernetes, such as "v1.37.2"
	Published Published // Required
	Etcd      string    // Required: the tags that kubeadm of exactly this version asks for
	CoreDNS   string
	Pause     string
	TagsFrom  string // Required: where these were read

	Repository   string // Optional: kubeadm's --image-repository
	CNI          []CNI  // Optional: images of the network plugin
	Windows      string // Optional: the release of the Windows nodes: 2019, 2022 or 2025
	WindowsPause string // Optional: the sandbox image that these nodes are set up with
	Bases        Bases  // Optional
}

// Image is something that a cluster needs.
type Image struct {
	Component string   `json:"component"`        // such as "kube-apiserver"
	Source    string   `json:"source"`           // where it is pulled from; empty where nobody publishes it
	Asked     string   `json:"name"`             // the name that kubeadm, kubelet or a manifest asks for
	Default   string   `json:"default"`          // that name without --image-repository
	Paths     []string `json:"paths"`            // "REPOSITORY:TAG" below the prefix of a mirror; coredns has two
	TagFrom   string   `json:"tagFrom"`          // where its tag was read
	OS        string   `json:"os,omitempty"`     // "windows" for what only Windows nodes pull
	Builds    string   `json:"builds,omitempty"` // of Windows: hosts of which builds run it
}

// Tag writes a version of Kubernetes as a tag, as kubeadm does: what a tag
// can't hold, such as "+", becomes "_".
func Tag(version string) string { return regexp.MustCompile(`[^-\w.]`).ReplaceAllString(version, "_") }

// List returns every image that a cluster needs, in the order in which kubeadm
// lists them, then those of the network plugin and of Windows.
func List(c Cluster) ([]Image, error) {
	b := c.Bases.withDefaults()
	tag := Tag(c.Version)
	var out []Image
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		i := Image{Component: name, Default: DefaultRelease + "/" + name + ":" + tag, Paths: []string{name + ":" + tag}, TagFrom: "the version, " + c.Version}
		switch c.Published {
		case CIBuild:
			i.Default, i.Source = DefaultCI+"/"+name+":"+tag, b.CI+"/"+name+":"+tag
		case Released:
			i.Source = b.Release + "/" + name + ":" + tag
		}
		out = append(out, c.finish(i))
	}
	for _, o := range []struct{ name, path, tag string }{{"coredns", "coredns/coredns", c.CoreDNS}, {"pause", "pause", c.Pause}, {"etcd", "etcd", c.Etcd}} {
		if !regexp.MustCompile(`^\w[\w.-]{0,127}$`).MatchString(o.tag) {
			return nil, &fault.Problem{Class: fault.Input, Field: "--k8s", Value: c.Version, Why: "has a kubeadm that asks for " + o.name + " with the tag \"" + o.tag + "\"", Fix: "look into " + c.TagsFrom}
		}
		i := Image{Component: o.name, Source: b.Release + "/" + o.path + ":" + o.tag, Default: DefaultRelease + "/" + o.path + ":" + o.tag,
			Paths: []string{o.name + ":" + o.tag}, TagFrom: c.TagsFrom}
		if o.path != o.name {
			i.Paths = append(i.Paths, o.path+":"+o.tag) // what other tools than kubeadm ask a mirror for
		}
		out = append(out, c.finish(i))
	}
	for _, n := range c.CNI {
		i := Image{Component: n.Component, Source: n.Name, Default: n.Name, Paths: []string{pathOf(n.Name)}, TagFrom: n.From, OS: n.OS}
		i.Asked = i.Default // a manifest names its images itself
		out = append(out, i)
	}
	win, err := c.windows(b)
	if err != nil {
		return nil, err
	}
	out = append(out, win...)
	if b.Mirror != "" {
		for i := range out {
			out[i].Source = b.Mirror + "/" + out[i].Paths[0]
		}
	}
	return out, nil
}

// finish fills in what is asked for. With a repository of its own kubeadm takes
// everything from there, whether the version is a CI build or not, and coredns
// without its second path.
func (c Cluster) finish(i Image) Image {
	i.Asked = i.Default
	if c.Repository != "" && c.Repository != DefaultRelease {
		i.Asked = c.Repository + "/" + i.Paths[0]
	}
	return i
}

func (b Bases) withDefaults() Bases {
	if b.Release == "" {
		b.Release = DefaultRelease
	}
	if b.CI == "" {
		b.CI = DefaultCI
	}
	if b.Microsoft == "" {
		b.Microsoft = DefaultMicrosoft
	}
	return b
}

// pathOf is a name without its registry.
func pathOf(name string) string {
	_, path, _ := strings.Cut(name, "/")
	path, _, _ = strings.Cut(path, "@")
	return path
}

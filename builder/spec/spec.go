// Package spec is what a user may ask of a build, with its defaults and its
// checks. It comes from flags, from a box file (wbox.yaml) and from presets,
// laid over one another; where each value came from is kept, so that an error
// can name it. It sits above the stages and must not import the builder, cmd
// or plugins.
package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/box"
	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/network"
)

// Spec is one build as asked for. Zero fields mean the default. The tags name
// a field's key in a box file and its flag; "path" marks a file or folder, which
// a box file names as seen from its own folder. The comments are also what
// schema.json says.
type Spec struct {
	K8s        string   `key:"k8s" flag:"--k8s" path:"maybe"`              // Required: what Kubernetes to bake: a version such as v1.37.2, another source, or a folder.
	K8sBase    string   `key:"k8sBase" flag:"--k8s-base"`                  // Optional: a version that programs missing from a folder come from. Default: none.
	K8sVersion string   `key:"k8sVersion" flag:"--k8s-version"`            // Optional: the version of a folder's kubelet.exe. Default: what the folder says.
	CNI        string   `key:"cni" flag:"--cni" path:"part"`               // Optional: none, calico, antrea or flannel, with @REF or @PATH also its programs, or a path alone. Default: none.
	Containerd string   `key:"containerd" flag:"--containerd" path:"part"` // Optional: a release of containerd, a git ref (git:REPOSITORY@REF), or a source tree, a folder of programs or an image. Default: not installed.
	Preload    []string `key:"preload" flag:"--preload" path:"archive"`    // Optional: container images that lie in the box already: pause, cni, a plugin's release such as calico@v3.32.0, nanoserver, servercore, an image's name, or an archive of images (.tar). Default: none.
	Windows    string   `key:"windows" flag:"--windows"`                   // Optional: 2019, 2022 or 2025. Default: 2022.
	Edition    string   `key:"edition" flag:"--edition"`                   // Optional: core or desktop. Default: core.
	ISO        string   `key:"iso" flag:"--iso" path:"always"`             // Optional: the Windows installation medium, a file or a URL. Default: the store has it, or it is downloaded.
	Providers  []string `key:"providers" flag:"--provider"`                // Optional: what to make. Default: libvirt.
	Name       string   `key:"name" flag:"--name"`                         // Optional: the box's name, OWNER/BOX. Default: local/wbox-wsWINDOWS-CNI.
	Revision   int      `key:"revision" flag:"--revision"`                 // Optional: the fourth number of the box's version. Default: 0.
	DiskGiB    int      `key:"diskGiB" flag:"--disk"`                      // Optional: size of the system disk in GiB. Default: 64.

	// What follows is in no key: it decides how a build runs, not what comes out.

	Output         string `key:"output" flag:"--output" path:"always"`    // Optional: the folder for box and catalog. Default: out.
	CPUs           int    `key:"cpus" flag:"--cpus"`                      // Optional: virtual processors of the machine. Default: 2.
	Memory         string `key:"memory" flag:"--memory"`                  // Optional: the machine's memory, such as 4GiB. Default: 4GiB, 2GiB for the stand-in.
	Activate       string `key:"activate" flag:"--activate"`              // Optional: auto or never: whether an evaluation of Windows is activated when it is installed, which takes the network. Default: auto, and never with --offline.
	LicenceDays    int    `key:"licenceDays" flag:"--licence-days"`       // Optional: how many days an evaluation must have left, else Windows is installed anew; before an activation, at most 3. Default: 30.
	AllowEmulation bool   `key:"allowEmulation" flag:"--allow-emulation"` // Optional: install real Windows without hardware acceleration, which takes hours. Default: false.

	// What follows is in no key either: the network around the build, and around a node.

	Proxy           string             `key:"proxy" flag:"--proxy"`                       // Optional: the HTTP proxy of downloads and of nodes, such as http://proxy.example.com:3128. Default: the environment's for downloads, none for nodes.
	NoProxy         []string           `key:"noProxy" flag:"--no-proxy"`                  // Optional: hosts, domains and networks that are reached without the proxy. Default: none.
	ClusterNetworks []string           `key:"clusterNetworks" flag:"--cluster-network"`   // Optional: the cluster's pod and service networks, which never go through the proxy. Default: 10.96.0.0/12 and what the CNI's own manifest has.
	ExtraCAs        []string           `key:"extraCAs" flag:"--extra-ca" path:"always"`   // Optional: files of certificates (PEM) that downloads and nodes trust too. Default: none.
	Registries      []network.Registry `key:"registries" flag:"--registry" path:"always"` // Optional: where containerd pulls images from instead. Default: none.

	origins origins // where the values came from; empty where a program set them
}

// The values of Activate.
const (
	ActivateAuto  = "auto"
	ActivateNever = "never"
)

// The values that some fields take.
var (
	releases = []string{"2019", "2022", "2025"}
	editions = []string{"core", "desktop"}
	activate = []string{ActivateAuto, ActivateNever}
)

// Default fills in what was not asked for.
func (s *Spec) Default() {
	def := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	def(&s.CNI, "none")
	def(&s.Windows, "2022")
	def(&s.Edition, "core")
	def(&s.Output, "out")
	def(&s.Activate, ActivateAuto)
	if len(s.Providers) == 0 || slices.Equal(s.Providers, []string{"auto"}) {
		s.Providers = []string{"libvirt"}
	}
	if s.CPUs == 0 {
		s.CPUs = 2
	}
	if s.DiskGiB == 0 {
		s.DiskGiB = 64
	}
	if s.LicenceDays == 0 {
		s.LicenceDays = licence.DefaultDays
	}
	if len(s.ClusterNetworks) == 0 {
		s.ClusterNetworks = network.DefaultClusterNetworks(s.CNIName())
	}
}

// Network returns what a defaulted Spec says about the network.
func (s *Spec) Network() network.Settings {
	return network.Settings{Proxy: s.Proxy, NoProxy: s.NoProxy, ClusterNetworks: s.ClusterNetworks, ExtraCAs: s.ExtraCAs, Registries: s.Registries}
}

// CNIName is the name of the CNI, whatever its programs come from; one that isn't
// known is returned as it is.
func (s *Spec) CNIName() string {
	r, err := component.ParseCNI(s.CNI)
	if err != nil {
		return s.CNI
	}
	return r.Project
}

// BoxName returns the box's name, with "-stand-in" appended where a stand-in
// plays Windows: nobody shall take it for the real thing.
func (s *Spec) BoxName(standIn bool) string {
	name := s.Name
	if name == "" {
		name = fmt.Sprintf("local/wbox-ws%s-%s", s.Windows, s.CNIName())
	}
	if standIn && !strings.HasSuffix(name, "-stand-in") {
		name += "-stand-in"
	}
	return name
}

// Validate returns every problem of a defaulted Spec, joined.
func (s *Spec) Validate() error {
	var problems []error
	bad := func(field, value, why, fix string) {
		problems = append(problems, &fault.Problem{Class: fault.Usage, Field: field, Value: value, Why: why, Fix: fix})
	}
	oneOf := func(field, value string, allowed []string) {
		if !slices.Contains(allowed, value) {
			bad(field, value, "is not known", "use one of "+strings.Join(allowed, ", "))
		}
	}
	if s.K8s == "" {
		bad("--k8s", "", "is required", "name a version such as v1.37.2, or a folder with kubelet.exe")
	}
	if _, err := component.ParseCNI(s.CNI); err != nil {
		problems = append(problems, err)
	}
	if s.Containerd != "" {
		if _, err := component.ParseContainerd(s.Containerd); err != nil {
			problems = append(problems, err)
		}
	}
	oneOf("--windows", s.Windows, releases)
	oneOf("--edition", s.Edition, editions)
	oneOf("--activate", s.Activate, activate)
	if s.LicenceDays < 1 || s.LicenceDays > licence.MostDays {
		bad("--licence-days", fmt.Sprint(s.LicenceDays), "is out of range", fmt.Sprintf("use 1 to %d; an evaluation has %d", licence.MostDays, licence.EvaluationDays))
	}
	for _, p := range s.Providers {
		if why, fix := refuseProvider(p); why != "" {
			bad("--provider", p, why, fix)
		}
	}
	if s.Name != "" {
		if err := box.ValidName(s.Name); err != nil {
			problems = append(problems, err)
		}
	}
	for _, word := range s.Preload {
		if word == "" {
			bad("--preload", word, "is empty", "name an image, such as pause, or leave it out")
		}
	}
	if len(s.Preload) > 0 && s.Containerd == "" {
		bad("--preload", strings.Join(s.Preload, ","), "needs containerd in the box, which imports the images", "name it with --containerd")
	}
	if s.Revision < 0 {
		bad("--revision", fmt.Sprint(s.Revision), "is negative", "use 0 or more")
	}
	if s.CPUs < 1 || s.CPUs > 64 {
		bad("--cpus", fmt.Sprint(s.CPUs), "is out of range", "use 1 to 64")
	}
	if s.DiskGiB < 32 || s.DiskGiB > 2048 {
		bad("--disk", fmt.Sprintf("%d", s.DiskGiB), "is out of range", "use 32 to 2048 (GiB); Windows Server asks for 32")
	}
	if s.Memory != "" {
		if _, err := ParseMemory(s.Memory); err != nil {
			problems = append(problems, err)
		}
	}
	problems = append(problems, s.Network().Validate())
	return errors.Join(problems...)
}

// refuseProvider says why a provider can't be made, or "".
func refuseProvider(p string) (why, fix string) {
	switch p {
	case "libvirt":
		return "", ""
	case "qemu":
		return "vagrant-qemu reads the libvirt box, but boots it with BIOS only, and this one needs UEFI", "use libvirt"
	case "auto", "virtualbox", "vmware", "hyperv", "ova", "raw", "qcow2", "vhdx", "vmdk":
		return "can't be made yet", "use libvirt"
	}
	return "is not known", "use libvirt"
}

var memoryPattern = regexp.MustCompile(`^([0-9]{1,7})\s*(MiB|M|MB|GiB|G|GB)?$`)

// ParseMemory reads a size such as "4GiB", "4G" or "4096" (MiB) and returns it
// in MiB. All units are powers of 1024, as in QEMU's -m.
func ParseMemory(text string) (int, error) {
	p := &fault.Problem{Class: fault.Usage, Field: "--memory", Value: text, Why: "is not a size", Fix: "write it as 4GiB or 4096MiB"}
	m := memoryPattern.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, p
	}
	var n int
	if _, err := fmt.Sscan(m[1], &n); err != nil {
		return 0, p
	}
	if strings.HasPrefix(m[2], "G") {
		n *= 1024
	}
	if n < 1024 || n > 1<<20 {
		p.Why, p.Fix = "is out of range", "use 1GiB to 1024GiB"
		return 0, p
	}
	return n, nil
}

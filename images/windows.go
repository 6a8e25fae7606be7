package images

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// windowsRelease is what is known of a release of Windows Server.
type windowsRelease struct {
	name       string
	build      int
	nanoserver string // tags of the base images; that of nanoserver keeps an older name
	servercore string
}

// windowsReleases are in the order of their builds.
func windowsReleases() []windowsRelease {
	return []windowsRelease{
		{"2019", 17763, "1809", "ltsc2019"},
		{"2022", 20348, "ltsc2022", "ltsc2022"},
		{"2025", 26100, "ltsc2025", "ltsc2025"},
	}
}

// firstStable is the build from which on Windows runs images of older builds.
const firstStable = 20348

// RunsOn says whether a host runs a process-isolated image: up to build 20348
// it needs its own build, from there on any from 20348 to its own
// (containerd's platform matcher).
func RunsOn(host, image int) bool {
	if host < firstStable {
		return host == image
	}
	return firstStable <= image && image <= host
}

// BuildOf is the build in Windows' version as an index or config has it
// (10.0.20348.2700); 0 where there is none, as in HostProcess images, which
// run on every build.
func BuildOf(osVersion string) int {
	n, err := strconv.Atoi(buildOf(osVersion))
	if err != nil {
		return 0
	}
	return n
}

// WindowsBase is the name of a base image, "nanoserver" or "servercore", for
// hosts of a build, and "" where none is known.
func WindowsBase(base string, build int) string {
	for _, r := range windowsReleases() {
		if tag := map[string]string{"nanoserver": r.nanoserver, "servercore": r.servercore}[base]; r.build == build && tag != "" {
			return DefaultMicrosoft + "/windows/" + base + ":" + tag
		}
	}
	return ""
}

// hostsOf says which releases run an image of a build.
func hostsOf(build int) string {
	var hosts []string
	for _, r := range windowsReleases() {
		if RunsOn(r.build, build) {
			hosts = append(hosts, r.name)
		}
	}
	return strings.Join(hosts, ", ")
}

// windows lists what Windows nodes need: the sandbox image and the base images
// of their release.
func (c Cluster) windows(b Bases) ([]Image, error) {
	if c.Windows == "" {
		return nil, nil
	}
	all := windowsReleases()
	n := slices.IndexFunc(all, func(r windowsRelease) bool { return r.name == c.Windows })
	if n < 0 {
		return nil, &fault.Problem{Class: fault.Usage, Field: "--windows", Value: c.Windows, Why: "is no release that is known", Fix: "use 2019, 2022 or 2025"}
	}
	r := all[n]
	var out []Image
	if c.WindowsPause != "" && c.WindowsPause != DefaultRelease+"/pause:"+c.Pause {
		path := pathOf(c.WindowsPause)
		out = append(out, Image{Component: "pause", Source: b.Release + "/" + path, Default: c.WindowsPause, Asked: c.WindowsPause, Paths: []string{path},
			TagFrom: "the sandbox image of boxes with build " + strconv.Itoa(r.build), OS: "windows"})
	}
	for _, base := range []struct{ name, tag string }{{"nanoserver", r.nanoserver}, {"servercore", r.servercore}} {
		path := "windows/" + base.name + ":" + base.tag
		out = append(out, Image{Component: base.name, Source: b.Microsoft + "/" + path, Default: DefaultMicrosoft + "/" + path, Asked: DefaultMicrosoft + "/" + path,
			Paths: []string{path}, TagFrom: "Windows Server " + r.name + ", build " + strconv.Itoa(r.build), OS: "windows", Builds: hostsOf(r.build)})
	}
	return out, nil
}

// HostBuild is the build of a release of Windows Server; 0 where it is not known.
func HostBuild(release string) int {
	for _, r := range windowsReleases() {
		if r.name == release {
			return r.build
		}
	}
	return 0
}

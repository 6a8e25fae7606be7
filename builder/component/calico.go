package component

import (
	"regexp"
)

// calicoModule is the module path of Calico, which has no major versions in it.
const calicoModule = "github.com/projectcalico/calico"

// calicoOne is the package of the one Windows program that Calico has since
// v3.33.
const calicoOne = "cmd/calico-windows"

// calico: packages, flags and version as in lib.Makefile, node/Makefile and
// cni-plugin/Makefile (read at v3.28.0 to v3.32.1 and at the master that
// becomes v3.33), places as in the release's zip and images. Up to v3.32 there
// are calico-node.exe and the plugin; calico-ipam.exe is a copy of that.
func calico() *project {
	const folder = `C:\CalicoWindows\`
	match := func(packages string) *regexp.Regexp {
		// The official build of calico-node names a file instead of a package.
		return regexp.MustCompile(`^github\.com/projectcalico/calico (command-line-arguments|github\.com/projectcalico/calico/(` + packages + `))$`)
	}
	more, places := plugins()
	return &project{
		name: Calico, title: "Calico", flag: cniFlag, gitURL: "https://github.com/projectcalico/calico.git",
		module:   regexp.MustCompile(`^` + regexp.QuoteMeta(calicoModule) + `$`),
		describe: []string{"--tags", "--match=v*", "--always", "--abbrev=12"},
		ready: append([]ready{
			{name: "calico", required: true, match: match(`(node|cni-plugin)/cmd/calico|` + calicoOne)},
			{name: "calico-ipam", match: match(`(node|cni-plugin)/cmd/calico(-ipam)?|` + calicoOne)},
			{name: "calico-node", match: match(`node/cmd/calico-node`)},
			{name: "flannel"},
		}, more...),
		copies: map[string]string{"calico-ipam": "calico"},
		places: append([]Place{
			{"calico.exe", []string{folder + `cni\calico.exe`, folder + "calico.exe", binFolder + "calico.exe"}},
			{"calico-ipam.exe", []string{folder + `cni\calico-ipam.exe`, binFolder + "calico-ipam.exe"}},
			{"calico-node.exe", []string{folder + "calico-node.exe"}},
			{"flannel.exe", []string{binFolder + "flannel.exe"}},
		}, places...),
		version: calicoVersion, recipe: calicoRecipe,
	}
}

// calicoVersion is what git describe says, or the commit where there is no tag.
func calicoVersion(t tree) string {
	v := t.facts.Described
	if v == "" {
		return "unknown"
	}
	if t.facts.Dirty {
		v += "-dirty"
	}
	return v
}

func calicoRecipe(t tree, ref Ref) recipe {
	r := recipe{alone: ref.Version}
	if _, err := t.read(calicoOne + "/main.go"); err == nil {
		r.programs = append(r.programs, windowsProgram("calico", calicoModule+"/"+calicoOne))
	} else {
		r.programs = append(r.programs, windowsProgram("calico", calicoModule+"/cni-plugin/cmd/calico"),
			windowsProgram("calico-node", calicoModule+"/node/cmd/calico-node"))
		r.unstamped = "calico" // the plugin knew its version alone up to v3.31
	}
	const common, node = calicoModule + "/pkg/buildinfo.", calicoModule + "/node/buildinfo." // the second up to v3.28
	r.vars = [][2]string{
		{common + "Version", ref.Version}, {common + "GitRevision", ref.Commit},
		{node + "GitVersion", ref.Version}, {node + "GitRevision", ref.Commit},
		{calicoModule + "/node/pkg/lifecycle/startup.VERSION", ref.Version}, {"main.VERSION", ref.Version},
	}
	if ref.BuildDate != "" {
		r.vars = append(r.vars, [2]string{common + "BuildDate", ref.BuildDate}, [2]string{node + "BuildDate", ref.BuildDate})
	}
	if ref.Commit != "" {
		r.stamps = []string{ref.Commit}
	}
	return r
}

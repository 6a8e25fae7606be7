package component

import (
	"regexp"
	"strings"
)

// antrea: packages, flags and version as in its Makefile (windows-bin) and
// versioning.mk, places as in build/images/Dockerfile.build.windows and
// hack/windows/Helper.psm1 (read at v1.15.0 to v2.7.0; the module is
// antrea.io/antrea/v2 since v2.7).
func antrea() *project {
	match := func(program string) *regexp.Regexp {
		return regexp.MustCompile(`^antrea\.io/antrea(/v\d+)? antrea\.io/antrea(/v\d+)?/cmd/` + program + `$`)
	}
	more, places := plugins()
	return &project{
		name: Antrea, title: "Antrea", flag: cniFlag, gitURL: "https://github.com/antrea-io/antrea.git",
		module:   regexp.MustCompile(`^antrea\.io/antrea(/v\d+)?$`),
		describe: []string{"--tags", "--exact-match"},
		ready: append([]ready{
			{name: "antrea-agent", required: true, match: match("antrea-agent")},
			{name: "antrea-cni", required: true, aka: "antrea", match: match("antrea-cni")},
			{name: "antctl", match: match("antctl")},
		}, more...),
		places: append([]Place{
			{"antrea-agent.exe", []string{`C:\k\antrea\bin\antrea-agent.exe`}},
			{"antrea-cni.exe", []string{binFolder + "antrea.exe"}},
			{"antctl.exe", []string{`C:\k\antrea\bin\antctl.exe`}},
		}, places...),
		version: antreaVersion, recipe: antreaRecipe,
	}
}

// antreaSHA is the abbreviated commit. Git would choose its length by the number
// of objects that happen to be in the repository.
func antreaSHA(commit string) string { return commit[:min(9, len(commit))] }

// antreaBase is the version that the file VERSION says.
func antreaBase(t tree) string {
	data, err := t.read("VERSION")
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// antreaVersion is that of the file VERSION, with the commit where it is not
// that of a tag.
func antreaVersion(t tree) string {
	v := antreaBase(t)
	switch {
	case v == "" || t.facts.Described != "":
		return v
	case t.facts.Commit == "":
		return v + "-unknown"
	}
	v += "-" + antreaSHA(t.facts.Commit)
	if t.facts.Dirty {
		v += ".dirty"
	}
	return v
}

func antreaRecipe(t tree, ref Ref) recipe {
	base, status, state := antreaBase(t), "unreleased", ref.TreeState
	if base == ref.Version {
		status = "released"
	}
	if ref.Commit == "" {
		state = "" // what it says where there is no git
	}
	r := recipe{alone: base}
	for _, p := range []string{"antrea-agent", "antrea-cni", "antctl"} {
		r.programs = append(r.programs, windowsProgram(p, t.module+"/cmd/"+p))
	}
	for _, v := range [][2]string{{"Version", base}, {"GitSHA", antreaSHA(ref.Commit)}, {"GitTreeState", state}, {"ReleaseStatus", status}} {
		r.vars = append(r.vars, [2]string{t.module + "/pkg/version." + v[0], v[1]})
	}
	if ref.Commit != "" {
		r.stamps = []string{antreaSHA(ref.Commit)}
	}
	return r
}

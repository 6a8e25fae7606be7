package component

import (
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
)

// hcsshim is the module of the shim, which is no part of containerd.
const (
	hcsshim     = "github.com/Microsoft/hcsshim"
	shimProgram = "containerd-shim-runhcs-v1"
)

// containerd: packages, tags, flags and version as in its Makefile, the shim
// as in script/setup/install-runhcs-shim (read at v1.7.28 to v2.4.0-beta.0).
// Where they go is the matter of the guest script, as with a folder's.
func containerd() *project {
	match := func(program string) *regexp.Regexp {
		return regexp.MustCompile(`^(\S* )?github\.com/containerd/containerd(/v\d+)?/cmd/` + program + `$`)
	}
	return &project{
		name: Containerd, title: "containerd", flag: containerdFlag, gitURL: "https://github.com/containerd/containerd.git",
		module:   regexp.MustCompile(`^github\.com/containerd/containerd(/v\d+)?$`),
		describe: []string{"--match=v[0-9]*", "--always", "--abbrev=9"},
		ready: []ready{
			{name: "containerd", required: true, match: match("containerd")},
			{name: "ctr", required: true, match: match("ctr")},
			{name: shimProgram, required: true, match: regexp.MustCompile(`^(\S* )?github\.com/Microsoft/hcsshim/cmd/` + shimProgram + `$`)},
		},
		others:  true,
		version: containerdVersion, recipe: containerdRecipe,
	}
}

// containerdVersion is what git describe says, the commit where there is no tag,
// and what the source says where there is no repository.
func containerdVersion(t tree) string {
	v := t.facts.Described
	if v == "" {
		data, err := t.read("version/version.go")
		if m := regexp.MustCompile(`(?m)^\s*Version\s*=\s*"([0-9][0-9A-Za-z.+-]*)"`).FindSubmatch(data); err == nil && m != nil {
			return "v" + string(m[1])
		}
		return ""
	}
	if t.facts.Dirty {
		v += ".m"
	}
	return v
}

func containerdRecipe(t tree, ref Ref) recipe {
	r := recipe{tags: "urfave_cli_no_docs", alone: ref.Version, shim: shimVersion(t)}
	for _, p := range []string{"containerd", "ctr"} {
		r.programs = append(r.programs, windowsProgram(p, t.module+"/cmd/"+p))
	}
	revision := ref.Commit
	if ref.TreeState == "dirty" {
		revision += ".m"
	}
	pkg := t.module + "/version"
	r.vars = [][2]string{{pkg + ".Version", ref.Version}, {pkg + ".Revision", revision}, {pkg + ".Package", t.module}}
	if ref.Commit != "" {
		r.stamps = []string{revision}
	}
	return r
}

// shimVersion is the version of hcsshim that the tree is released with: the file
// that its script reads, else the one that it requires; "" where neither says.
func shimVersion(t tree) string {
	if data, err := t.read("script/setup/runhcs-version"); err == nil {
		if v := strings.TrimSpace(string(data)); regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`).MatchString(v) {
			return v
		}
	}
	data, err := t.read("go.mod")
	if err != nil {
		return ""
	}
	mod, err := modfile.ParseLax("go.mod", data, nil)
	if err != nil {
		return ""
	}
	for _, q := range mod.Require {
		if q.Mod.Path == hcsshim {
			return q.Mod.Version
		}
	}
	return ""
}

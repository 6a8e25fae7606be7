package component

import (
	"regexp"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
)

// project is what is special about one project.
type project struct {
	name     string            // such as "antrea"
	title    string            // for people, such as "Antrea"
	flag     string            // the flag that all problems are about
	gitURL   string            // of its own repository; empty: it isn't compiled
	module   *regexp.Regexp    // its module path
	describe []string          // arguments of git describe that its version needs
	ready    []ready           // the programs that a folder or an image of it may hold
	others   bool              // what else lies in such a folder is taken too
	copies   map[string]string // a program -> the one that it is a copy of, where it isn't there itself
	places   []Place           // where its programs go inside Windows

	// version is the version of a tree as its official build works it out.
	version func(t tree) string
	// recipe says how to compile what ref, whose version is known, stands for.
	recipe func(t tree, ref Ref) recipe
}

// ready is a program that was compiled elsewhere.
type ready struct {
	name     string         // such as "antrea-agent"
	required bool           // a folder without it is refused
	aka      string         // another name of its file, without ".exe", or ""
	match    *regexp.Regexp // what "MODULE PACKAGE" of its main package must match; nil: any Windows program
}

// tree is a source tree of a project.
type tree struct {
	read   gosource.FileReader
	module string // path in its go.mod
	golang string // the go line of its go.mod, such as "go1.26.0"
	pinned string // the toolchain line, or ""
	facts  gosource.Facts
}

// recipe is how programs are compiled and what proves that they are.
type recipe struct {
	programs  []gosource.Program
	tags      string      // build tags, with commas
	vars      [][2]string // version variables and their values; those of packages that aren't there do nothing
	stamps    []string    // each must occur in a program, the commit for one
	unstamped string      // the program that has none of them, or ""
	alone     string      // must occur outside of module paths
	shim      string      // version of hcsshim that the shim is compiled from, or ""
}

// Place is where a program goes inside Windows.
type Place struct {
	File string   `json:"file"` // such as "antrea-cni.exe"
	To   []string `json:"to"`   // full paths
}

// Places returns where a project's programs go: where its own releases and
// images put them.
func Places(name string) []Place {
	if p := projectOf(name); p != nil {
		return p.places
	}
	return nil
}

// Needed returns the files of the programs that a project can't do without.
func Needed(name string) []string {
	var out []string
	if p := projectOf(name); p != nil {
		for _, r := range p.ready {
			if r.required {
				out = append(out, r.name+".exe")
			}
		}
	}
	return out
}

// projects lists all of them.
func projects() []*project { return []*project{antrea(), calico(), flannel(), containerd()} }

// projectOf returns a project by name, or nil.
func projectOf(name string) *project {
	for _, p := range projects() {
		if p.name == name {
			return p
		}
	}
	return nil
}

// binFolder is where the CNI plugins of a node lie.
const binFolder = `C:\opt\cni\bin\`

// plugins are CNI plugins of other projects that images and releases of a CNI
// carry beside its own programs.
func plugins() (programs []ready, places []Place) {
	for _, name := range []string{"host-local", "sdnoverlay", "sdnbridge", "win-overlay", "win-bridge"} {
		programs = append(programs, ready{name: name})
		places = append(places, Place{name + ".exe", []string{binFolder + name + ".exe"}})
	}
	return programs, places
}

// windowsProgram is a program that is compiled.
func windowsProgram(name, pkg string) gosource.Program {
	return gosource.Program{Name: name, Package: pkg, GOOS: gosource.Windows}
}

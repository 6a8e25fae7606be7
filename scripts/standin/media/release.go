package media

import "fmt"

// release is what the medium says about the Windows Server that it plays.
type release struct {
	name  string // the year
	build int    // the build number in install.wim
	minor int    // SPBUILD, the update revision
}

// image is one image of install.wim, in the order of Microsoft's media.
type image struct {
	name         string // NAME, after the year
	display      string // DISPLAYNAME, after "Windows Server <year> "
	edition      string // EDITIONID
	installation string // INSTALLATIONTYPE
}

// images lists the images in the order of the evaluation media (1 Standard
// Core, 2 Standard Desktop, 3 Datacenter Core, 4 Datacenter Desktop); source:
// rgl/windows-vagrant's list of evaluation ISOs, and the NAME values from the
// answer files of kubernetes-sigs/image-builder and chef/bento.
func images() []image {
	return []image{
		{"SERVERSTANDARDCORE", "Standard Evaluation", "ServerStandardEval", "Server Core"},
		{"SERVERSTANDARD", "Standard Evaluation (Desktop Experience)", "ServerStandardEval", "Server"},
		{"SERVERDATACENTERCORE", "Datacenter Evaluation", "ServerDatacenterEval", "Server Core"},
		{"SERVERDATACENTER", "Datacenter Evaluation (Desktop Experience)", "ServerDatacenterEval", "Server"},
	}
}

// releaseOf returns the release of that name; the revisions are those of the
// evaluation media, 20348.587 and 26100.1742.
func releaseOf(name string) (release, error) {
	switch name {
	case "", "2022":
		return release{name: "2022", build: 20348, minor: 587}, nil
	case "2025":
		return release{name: "2025", build: 26100, minor: 1742}, nil
	}
	return release{}, fmt.Errorf("release %q: the stand-in plays 2022 or 2025", name)
}

package component

import "regexp"

// flannel is taken from a release only: flanneld.exe is compiled with cgo and a
// C compiler for Windows (its Makefile sets CGO_ENABLED=1 and CC to mingw's).
func flannel() *project {
	more, places := plugins()
	return &project{
		name: Flannel, title: "flannel", flag: cniFlag,
		ready: append([]ready{
			{name: "flanneld", required: true, match: regexp.MustCompile(`^github\.com/flannel-io/flannel (command-line-arguments|github\.com/flannel-io/flannel)$`)},
			{name: "flannel", aka: "flannel-amd64", match: regexp.MustCompile(`^github\.com/flannel-io/cni-plugin( |$)`)},
		}, more...),
		places: append([]Place{
			{"flanneld.exe", []string{`C:\flannel\flanneld.exe`}},
			{"flannel.exe", []string{binFolder + "flannel.exe"}},
		}, places...),
	}
}

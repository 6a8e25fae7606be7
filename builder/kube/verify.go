package kube

import (
	"github.com/wbox-dev/wbox/builder/internal/gosource"
)

// Expect is what Verify demands of a file. Empty fields demand nothing.
type Expect = gosource.Expect

// Verify checks that the file is the program it is taken for; see
// gosource.Verify. The package that it is built from follows from want.Name. It
// returns the program with its digest. What is wrong with the file is a
// *fault.Problem of class fault.Input.
func Verify(path string, want Expect) (Binary, error) {
	if want.Field == "" {
		want.Field = field
	}
	// Releases before 1.30 were built with a vendor folder in GOPATH style.
	want.Packages = []string{packageOf(want.Name), mainModule + "/vendor/" + packageOf(want.Name)}
	return gosource.Verify(path, want)
}

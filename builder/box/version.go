package box

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Vagrant's versions are RubyGems', not SemVer: "-" makes a prerelease of
// whatever follows, "+" and a leading "v" are not allowed, and one bad version
// makes the whole catalog unreadable for everybody (all tried).
var (
	kubernetesForm = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+)(?:-([0-9A-Za-z.-]+))?$`)
	afterRelease   = regexp.MustCompile(`^[0-9]+$`)
	preRelease     = regexp.MustCompile(`^((?:alpha|beta|rc)\.[0-9]+)(?:\.([0-9]+))?$`)
	rubyForm       = regexp.MustCompile(`^[0-9]+(\.[0-9a-zA-Z]+)*(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
)

// Version returns a box's version for the version of Kubernetes inside, as its
// --version prints it, and the image's revision, which counts builds of the
// same Kubernetes:
//
//	v1.37.2                          -> 1.37.2.N
//	v1.38.0-alpha.1                  -> 1.38.0-alpha.1.0.N   (0 commits after the tag)
//	v1.38.0-alpha.1.23+0123abcd      -> 1.38.0-alpha.1.23.N  (23 commits after it)
//	v1.37.2-5+0123abcd               -> 1.37.2.N.5           (5 commits after the release: newer than it)
//	v1.37.2-vendor.1                 -> 1.37.2-vendor.1.N    (older than 1.37.2 for Vagrant)
//
// What follows "+" and a trailing "-dirty" are left out: the box's description
// carries the version in full. Newer commits and higher revisions sort behind
// older ones. The error is a *fault.Problem of class fault.Usage.
func Version(kubernetes string, revision int) (string, error) {
	bad := func(field, value, why, fix string) (string, error) {
		return "", &fault.Problem{Class: fault.Usage, Field: field, Value: value, Why: why, Fix: fix}
	}
	if revision < 0 {
		return bad("--revision", strconv.Itoa(revision), "a revision is not negative", "count from 0")
	}
	v, _, _ := strings.Cut(kubernetes, "+")
	m := kubernetesForm.FindStringSubmatch(strings.TrimSuffix(v, "-dirty"))
	if m == nil {
		return bad("--k8s-version", kubernetes, "it is not a version of Kubernetes", "give one such as v1.37.2")
	}
	base, rest, n := m[1], m[2], strconv.Itoa(revision)
	var out string
	switch pre := preRelease.FindStringSubmatch(rest); {
	case rest == "":
		out = base + "." + n
	case afterRelease.MatchString(rest):
		out = base + "." + n + "." + rest
	case pre != nil && pre[2] == "":
		out = base + "-" + pre[1] + ".0." + n
	default:
		out = base + "-" + rest + "." + n
	}
	if !rubyForm.MatchString(out) {
		return bad("--k8s-version", kubernetes, fmt.Sprintf("Vagrant can't read the version %s that it leads to", out),
			"give one such as v1.37.2")
	}
	return out, nil
}

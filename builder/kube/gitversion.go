package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// describedVersion turns the output of
// `git describe --tags --match='v*' --abbrev=14` into a version, as the official
// hack/lib/version.sh does: commits behind a pre-release tag are counted in its
// last number ("v1.37.0-alpha.0.2+<14 hex>"), others after a dash
// ("v1.36.3-5+<14 hex>"). A result that the script refuses, is no semantic
// version or is older than what can be compiled is an error.
func describedVersion(described string, dirty bool) (string, error) {
	v := described
	switch strings.Count(described, "-") {
	case 3:
		v = regexp.MustCompile(`-(\d+)-g([0-9a-f]{14})$`).ReplaceAllString(v, ".$1+$2")
	case 2:
		v = regexp.MustCompile(`-g([0-9a-f]{14})$`).ReplaceAllString(v, "+$1")
	}
	if dirty {
		v += "-dirty"
	}
	if !regexp.MustCompile(`^v([0-9]+)\.([0-9]+)(\.[0-9]+)?(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`).MatchString(v) {
		return "", fmt.Errorf("git describe says %q, which is not a version of Kubernetes", described)
	}
	normal, err := normalizeVersion(v, true)
	switch {
	case err != nil:
		return "", fmt.Errorf("git describe says %q: %w", described, err)
	case semver.Major(normal) != "v1" || semver.Compare(normal, oldestVersion) < 0:
		return "", fmt.Errorf("git describe says %q, and %s is the oldest that can be compiled", described, oldestVersion)
	}
	return normal, nil
}

// checkMinor compares a version with the minor that the tree says of itself
// (DefaultKubeBinaryVersion in component-base/version/base.go, where it has
// one). Around a release they may be one apart; more than that tells of a
// repository that lacks tags.
func checkMinor(version string, read gosource.FileReader, sink report.Sink) error {
	data, err := read("staging/src/k8s.io/component-base/version/base.go")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // an older tree
	case err != nil:
		return err
	}
	m := regexp.MustCompile(`DefaultKubeBinaryVersion\s*=\s*"1\.(\d+)"`).FindSubmatch(data)
	if m == nil {
		return nil
	}
	says, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return nil
	}
	minor, err := strconv.Atoi(minorOf(version))
	if err != nil {
		return fmt.Errorf("reading the minor version of %s: %w", version, err)
	}
	switch d := minor - says; {
	case d > 1 || d < -1:
		return fmt.Errorf("the version would be %s, but the source says it is 1.%d: the repository lacks tags", version, says)
	case d != 0:
		sink.Emit(report.Event{Kind: report.Warning, Message: fmt.Sprintf("by its tags the source is %s, by component-base it is 1.%d", version, says)})
	}
	return nil
}

package kube

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
)

// oldestVersion is the first release that is compiled from the module. Older
// ones have other build tags, other flags and no kube-log-runner of this shape.
const oldestVersion = "v1.29.0"

// normalizeVersion returns text as "vX.Y.Z", "vX.Y.Z-pre" or, where build
// metadata is allowed, "vX.Y.Z-pre+meta". Blanks around it and a missing "v"
// are mended, anything else is refused: a version that was typed wrong must
// not become another one.
func normalizeVersion(text string, allowBuild bool) (string, error) {
	v := "v" + strings.TrimPrefix(strings.TrimSpace(text), "v")
	switch {
	case !semver.IsValid(v):
		return "", fmt.Errorf("%q is not of the form vX.Y.Z, such as v1.37.2 (numbers have no leading zeros)", text)
	case semver.Canonical(v)+semver.Build(v) != v:
		return "", fmt.Errorf("%q lacks the patch number; the form is vX.Y.Z, such as v1.37.2", text)
	case semver.Build(v) != "" && !allowBuild:
		return "", fmt.Errorf("%q carries build metadata (%s), which no release has", text, semver.Build(v))
	}
	return v, nil
}

// nearest returns those of versions that come right before and after want, at
// most three of each, in ascending order.
func nearest(versions []string, want string) []string {
	var all []string
	for _, v := range versions {
		if semver.IsValid(v) && semver.Compare(v, oldestVersion) >= 0 {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, semver.Compare)
	at, _ := slices.BinarySearchFunc(all, want, semver.Compare)
	return all[max(0, at-3):min(len(all), at+3)]
}

// versionProblem is a refused version.
func versionProblem(field, value, why, fix string) *fault.Problem {
	return &fault.Problem{Class: fault.Input, Field: field, Value: value, Why: why, Fix: fix}
}

// minorOf returns the minor number of a valid version, such as "37".
func minorOf(version string) string {
	_, minor, _ := strings.Cut(semver.MajorMinor(version), ".")
	return minor
}

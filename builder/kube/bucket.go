package kube

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// DefaultBaseURL is where Kubernetes publishes releases and CI builds.
const DefaultBaseURL = "https://dl.k8s.io"

// Prebuilt is the Options.Prefer that takes releases as they were published.
const Prebuilt = "prebuilt"

// The two halves of the place where builds are published.
const (
	release = "release"
	ci      = "ci"
)

// staleMarker is the age from which a marker is warned of: patch releases come
// every month, CI builds every hour.
const staleMarker = 60 * 24 * time.Hour

// bucketSource takes programs as they were published: of one version, or of
// that which a marker names.
type bucketSource struct {
	text    string
	kind    string // release or ci
	marker  string // such as "stable-1.37"; empty where version is set
	version string
	opts    Options
	seen    *markerFacts // what Resolve saw
}

// markerFacts are what a marker said.
type markerFacts struct {
	url      string
	version  string
	modified time.Time // zero: not told
}

func newMarker(text string, opts Options) (Source, error) {
	return &bucketSource{text: text, kind: release, marker: text, opts: opts}, prebuiltOnly(text, opts)
}

func newMinor(text string, opts Options) (Source, error) {
	return &bucketSource{text: text, kind: release, marker: "stable-" + strings.TrimPrefix(text, "v"), opts: opts}, prebuiltOnly(text, opts)
}

// newPrebuilt returns the source of "release/…": a marker or a version.
func newPrebuilt(text string, opts Options) (Source, error) {
	name := strings.TrimPrefix(text, "release/")
	if regexp.MustCompile(`^(stable|latest)(-1(\.\d+)?)?$`).MatchString(name) {
		return &bucketSource{text: text, kind: release, marker: name, opts: opts}, prebuiltOnly(text, opts)
	}
	m, err := parseModule(field, name, opts)
	if err != nil {
		return nil, err
	}
	return &bucketSource{text: text, kind: release, version: m.version, opts: opts}, prebuiltOnly(text, opts)
}

// newCI returns the source of "ci/…": a marker or a version.
func newCI(text string, opts Options) (Source, error) {
	name := strings.TrimPrefix(text, "ci/")
	if regexp.MustCompile(`^latest(-1(\.\d+)?)?$`).MatchString(name) {
		return &bucketSource{text: text, kind: ci, marker: name, opts: opts}, prebuiltOnly(text, opts)
	}
	const fix = "give ci/latest, ci/latest-1.37, or a build such as ci/v1.38.0-alpha.1.5+0123456789abcd"
	v, err := normalizeVersion(name, true)
	switch {
	case err != nil:
		return nil, &fault.Problem{Class: fault.Input, Field: field, Value: text, Why: "is no CI build", Err: err, Fix: fix}
	case !regexp.MustCompile(`\+[0-9a-f]{7,40}$`).MatchString(v):
		return nil, versionProblem(field, text, "is no CI build: its version has no commit (+0123456789abcd) at its end", fix)
	case semver.Major(v) != "v1" || semver.Compare(v, oldestVersion) < 0:
		return nil, versionProblem(field, text, "is older than "+oldestVersion+" or of another major version", fix)
	}
	return &bucketSource{text: text, kind: ci, version: v, opts: opts}, prebuiltOnly(text, opts)
}

// prebuiltOnly refuses options that programs which are ready can't follow.
func prebuiltOnly(text string, opts Options) error {
	if opts.Debug {
		return versionProblem(field, text, "is prebuilt, without debugging symbols", "give a version (v1.37.2) or a git ref with --debug: those are compiled")
	}
	return nil
}

// Resolve is not there yet.
func (s *bucketSource) Resolve(context.Context, report.Sink) (Ref, error) {
	return Ref{}, versionProblem(field, s.text, "is a prebuilt "+s.kind+", which is not supported yet", accepted)
}

// Fetch is not there yet.
func (s *bucketSource) Fetch(context.Context, Ref, string, string, report.Sink) (Bits, error) {
	return Bits{}, fmt.Errorf("fetching %s: not supported yet", s.text)
}

func newURL(text string, _ Options) (Source, error) {
	return nil, versionProblem(field, text, "looks like a URL, which is not supported yet", accepted)
}

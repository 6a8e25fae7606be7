package kube

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
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
	seen    *markerFacts // what Resolve saw, for Describe
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

// base is the folder of one version's files, without a slash at its end.
func (s *bucketSource) base(version string) string {
	return s.root() + "/" + s.kind + "/" + strings.ReplaceAll(version, "+", "%2B")
}

// root is the place where builds are published.
func (s *bucketSource) root() string {
	if s.opts.BaseURL == "" {
		return DefaultBaseURL
	}
	return strings.TrimRight(s.opts.BaseURL, "/")
}

// Resolve reads the marker, if there is one, and pins the digest of every file.
// Where the build that a marker names is not complete, it goes back to the newest
// one that is, and says so. Without the network a version is what it was when it
// was last resolved.
func (s *bucketSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	w, err := newWeb(s.opts, s.root(), sink)
	if err != nil {
		return Ref{}, err
	}
	if s.opts.Offline && s.marker == "" {
		if ref, ok := s.remembered(s.version); ok {
			return ref, nil
		}
	}
	ref, err := s.resolve(ctx, w, sink)
	if err != nil {
		return Ref{}, err
	}
	return ref, s.remember(ctx, ref)
}

func (s *bucketSource) resolve(ctx context.Context, w *web, sink report.Sink) (ref Ref, err error) {
	version := s.version
	if s.marker != "" {
		if s.seen, err = s.readMarker(ctx, w, sink); err != nil {
			return Ref{}, err
		}
		version = s.seen.version
	}
	ref, lacks, err := s.pin(ctx, w, version)
	if err != nil || len(lacks) == 0 {
		return ref, err
	}
	if s.marker == "" {
		return Ref{}, s.incomplete(ctx, w, version, lacks)
	}
	return s.stepBack(ctx, w, version, lacks, sink)
}

// readMarker reads what a marker says and whether it can be believed.
func (s *bucketSource) readMarker(ctx context.Context, w *web, sink report.Sink) (*markerFacts, error) {
	url := s.root() + "/" + s.kind + "/" + s.marker + ".txt"
	body, seen, err := w.text(ctx, url)
	if err != nil {
		if seen.status == 404 {
			return nil, versionProblem(field, s.text, "does not exist: there is no "+url, "give a version, such as v1.37.2")
		}
		return nil, err
	}
	v, err := normalizeVersion(body, s.kind == ci)
	bad := &fault.Problem{Class: fault.Network, Field: field, Value: s.text, Fix: "check " + url + ", or give a version"}
	switch {
	case err != nil:
		bad.Why, bad.Err = "is a marker that holds no version", fmt.Errorf("%q", gosource.FirstLine(body[:min(len(body), 80)]))
		return nil, bad
	case s.kind == ci && semver.Build(v) == "":
		bad.Why = "is a marker that holds " + v + ", which is no CI build"
		return nil, bad
	case strings.Contains(s.marker, "-1.") && !strings.HasSuffix(s.marker, "-"+strings.TrimPrefix(semver.MajorMinor(v), "v")):
		bad.Why = "is a marker that holds " + v + ", of another minor version"
		return nil, bad
	case semver.Major(v) != "v1" || semver.Compare(v, oldestVersion) < 0:
		return nil, versionProblem(field, s.text, "stands for "+v+", and "+oldestVersion+" is the oldest that works", "give a newer one")
	}
	m := &markerFacts{url: url, version: v, modified: seen.modified}
	if age := time.Since(m.modified); !m.modified.IsZero() && age > staleMarker {
		sink.Emit(report.Event{Kind: report.Warning, Message: fmt.Sprintf("the marker %s (%s) was last moved %d days ago, on %s", s.text, v, int(age.Hours()/24), m.modified.Format(time.DateOnly))})
	}
	return m, nil
}

// stepBack looks for the newest complete build before the one that a marker names.
func (s *bucketSource) stepBack(ctx context.Context, w *web, version string, lacks []string, sink report.Sink) (Ref, error) {
	older, err := s.older(ctx, w, version)
	if err != nil {
		return Ref{}, err
	}
	for _, v := range older {
		ref, missing, err := s.pin(ctx, w, v)
		if err != nil {
			return Ref{}, err
		}
		if len(missing) == 0 {
			sink.Emit(report.Event{Kind: report.Warning, Message: fmt.Sprintf("%s stands for %s, which is not complete (it lacks %s): stepping back to %s", s.text, version, strings.Join(lacks, ", "), v)})
			return ref, nil
		}
	}
	return Ref{}, s.incomplete(ctx, w, version, lacks)
}

// incomplete is the problem of a build that lacks files, or of which there is
// nothing at all.
func (s *bucketSource) incomplete(ctx context.Context, w *web, version string, lacks []string) error {
	p := &fault.Problem{Class: fault.Input, Field: field, Value: s.text, Why: version + " is not complete at " + s.base(version) + ": it lacks " + strings.Join(lacks, ", "),
		Fix: "try again later, or give another version"}
	if len(lacks) == len(s.opts.targets(Programs())) {
		p.Why = version + " is not published at " + s.base(version)
	}
	if s.kind == release {
		if body, _, err := w.text(ctx, s.root()+"/release/stable-"+strings.TrimPrefix(semver.MajorMinor(version), "v")+".txt"); err == nil {
			if v, err := normalizeVersion(body, false); err == nil {
				p.Fix = "the newest of " + semver.MajorMinor(version) + " is " + v
			}
		}
		return p
	}
	if all, err := s.list(ctx, w, version); err == nil {
		if near := nearest(all, version); len(near) > 0 {
			p.Fix = "the nearest builds: " + strings.Join(near, ", ")
		}
	}
	return p
}

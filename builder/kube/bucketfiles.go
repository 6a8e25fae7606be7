package kube

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/semver"
	"golang.org/x/sync/errgroup"

	"github.com/wbox-dev/wbox/builder/fault"
)

// maxStepsBack is how many older builds are looked at for a complete one.
const maxStepsBack = 12

// archiveOf is the archive that has a system's programs too. That of a node has
// none of a control plane's.
func (o Options) archiveOf(goos string) string {
	if o.ControlPlane != "" {
		return "kubernetes-server-" + goos + "-" + o.ControlPlane + ".tar.gz"
	}
	return "kubernetes-node-" + goos + "-amd64.tar.gz"
}

// fileURL is the address of a target's own file.
func (s *bucketSource) fileURL(version string, t target) string {
	return s.base(version) + "/bin/" + t.goos + "/" + t.arch() + "/" + t.file()
}

// pin looks for the files of one version and for their checksums. What a
// target's own file lacks (itself, or both checksums) is looked for in its
// system's archive; lacks names what is found in neither.
func (s *bucketSource) pin(ctx context.Context, w *web, version string) (ref Ref, lacks []string, err error) {
	ref = Ref{Source: s.kind, Version: version, Inputs: map[string]string{}}
	var mu sync.Mutex
	missing := map[string][]string{} // by system
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(6)
	for _, t := range s.opts.targets(Programs()) {
		g.Go(func() error {
			sums, err := w.published(gctx, s.fileURL(version, t))
			mu.Lock()
			defer mu.Unlock()
			for algorithm, sum := range sums {
				ref.Inputs[inputName(t.file(), algorithm)] = algorithm + ":" + sum
			}
			if len(sums) == 0 {
				missing[t.goos] = append(missing[t.goos], t.file())
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Ref{}, nil, err
	}
	for goos, files := range missing {
		sums, err := w.published(ctx, s.base(version)+"/"+s.opts.archiveOf(goos))
		if err != nil {
			return Ref{}, nil, err
		}
		for algorithm, sum := range sums {
			ref.Inputs[inputName(s.opts.archiveOf(goos), algorithm)] = algorithm + ":" + sum
		}
		if len(sums) == 0 {
			lacks = append(lacks, files...)
		}
	}
	slices.Sort(lacks)
	return ref, lacks, nil
}

// inputName is the name under which the digest of a file enters a Ref's inputs.
func inputName(file, algorithm string) string {
	if algorithm == "sha256" {
		return file
	}
	return file + "." + algorithm
}

// published returns the published checksums of a file, by algorithm; none where
// either the file or all its checksums are not there.
func (w *web) published(ctx context.Context, fileURL string) (map[string]string, error) {
	sums := map[string]string{}
	for algorithm, digits := range map[string]int{"sha256": 64, "sha512": 128} {
		body, seen, err := w.text(ctx, fileURL+"."+algorithm)
		switch {
		case err != nil && seen.status == 404:
			continue
		case err != nil:
			return nil, err
		}
		fields := strings.Fields(body)
		if len(fields) == 0 || !regexp.MustCompile(`^[0-9A-Fa-f]{`+strconv.Itoa(digits)+`}$`).MatchString(fields[0]) {
			return nil, &fault.Problem{Class: fault.Network, Field: field, Value: fileURL + "." + algorithm, Why: fmt.Sprintf("is no checksum: it begins with %q", body[:min(len(body), 40)]),
				Fix: "check --kube-base-url, and what stands between you and that server"}
		}
		sums[algorithm] = strings.ToLower(fields[0])
	}
	if len(sums) == 0 {
		return nil, nil
	}
	there, err := w.exists(ctx, fileURL)
	if err != nil || !there {
		return nil, err
	}
	return sums, nil
}

// older lists builds before version, the newest first.
func (s *bucketSource) older(ctx context.Context, w *web, version string) ([]string, error) {
	if s.kind == release {
		return olderReleases(version), nil
	}
	all, err := s.list(ctx, w, version)
	if err != nil {
		return nil, &fault.Problem{Class: fault.Network, Field: field, Value: s.text, Why: "stands for " + version + ", which is not complete, and which builds came before can't be listed", Err: err,
			Fix: "try again later, or give a build such as ci/v1.38.0-alpha.1.5+0123456789abcd"}
	}
	all = slices.DeleteFunc(all, func(v string) bool { return semver.Compare(v, version) >= 0 })
	slices.SortFunc(all, func(a, b string) int { return semver.Compare(b, a) })
	return all[:min(len(all), maxStepsBack)], nil
}

// olderReleases counts the last number of a release down: v1.37.2 -> v1.37.1,
// v1.37.0, and v1.38.0-alpha.1 -> v1.38.0-alpha.0.
func olderReleases(version string) []string {
	m := regexp.MustCompile(`^(.*\.)(\d+)$`).FindStringSubmatch(version)
	if m == nil {
		return nil
	}
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return nil
	}
	var out []string
	for i := n - 1; i >= 0 && len(out) < maxStepsBack; i-- {
		out = append(out, m[1]+strconv.Itoa(i))
	}
	return out
}

// ciList is where the CI builds of the default place are listed; a place of the
// user's is asked itself.
const ciList = "https://storage.googleapis.com/k8s-release-dev"

// maxPages bounds a list; the store keeps 90 days of builds, one an hour, and a
// page has a thousand.
const maxPages = 8

// list returns the CI builds of version's minor, as the XML interface that
// object stores share tells them.
func (s *bucketSource) list(ctx context.Context, w *web, version string) ([]string, error) {
	root := s.root()
	if s.opts.BaseURL == "" {
		root = ciList
	}
	var out []string
	marker := ""
	for range maxPages {
		query := url.Values{"prefix": {"ci/" + semver.MajorMinor(version) + "."}, "delimiter": {"/"}}
		if marker != "" {
			query.Set("marker", marker)
		}
		body, _, err := w.text(ctx, root+"/?"+query.Encode())
		if err != nil {
			return nil, err
		}
		builds, next, err := parseListing([]byte(body))
		if err != nil {
			return nil, fmt.Errorf("reading the list of builds: %w", err)
		}
		if out = append(out, builds...); next == "" || next == marker {
			return out, nil
		}
		marker = next
	}
	return out, nil
}

// parseListing reads one page of an object store's list: the versions in it,
// and where the next page begins.
func parseListing(data []byte) (versions []string, next string, err error) {
	var page struct {
		XMLName        xml.Name `xml:"ListBucketResult"`
		IsTruncated    bool
		NextMarker     string
		CommonPrefixes []struct{ Prefix string }
	}
	if err := xml.Unmarshal(data, &page); err != nil {
		return nil, "", err
	}
	for _, p := range page.CommonPrefixes {
		v := strings.TrimSuffix(strings.TrimPrefix(p.Prefix, "ci/"), "/")
		if normal, err := normalizeVersion(v, true); err == nil && normal == v && semver.Build(v) != "" {
			versions = append(versions, v)
		}
	}
	if page.IsTruncated {
		next = page.NextMarker
	}
	return versions, next, nil
}

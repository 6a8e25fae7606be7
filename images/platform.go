package images

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Platform is a system that an image is made for.
type Platform struct {
	OS, Architecture string
	Variant          string // Optional: such as "v7" of arm
	Build            string // Optional: of Windows, such as "20348" of 10.0.20348.2700
}

// ParsePlatform reads OS/ARCHITECTURE[/VARIANT][:BUILD], such as linux/amd64 or
// windows/amd64:20348. For Windows a whole os.version (10.0.20348.2700) is
// understood too; only its build counts, as for Windows itself.
func ParsePlatform(field, text string) (Platform, error) {
	names, build, hasBuild := strings.Cut(text, ":")
	parts := strings.Split(names, "/")
	if v := strings.Split(build, "."); len(v) > 2 {
		build = v[2]
	}
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") || hasBuild && (build == "" || parts[0] != "windows") {
		return Platform{}, &fault.Problem{Class: fault.Usage, Field: field, Value: text, Why: "is no platform", Fix: "write it as linux/amd64, windows/amd64 or windows/amd64:20348"}
	}
	p := Platform{OS: parts[0], Architecture: parts[1], Build: build}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}

// String writes the platform as ParsePlatform reads it.
func (p Platform) String() string {
	s := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	if p.Build != "" {
		s += ":" + p.Build
	}
	return s
}

// Matches says whether what an index says of a child is of this platform.
func (p Platform) Matches(have *v1.Platform) bool {
	if have == nil || have.OS != p.OS || have.Architecture != p.Architecture || p.Variant != "" && have.Variant != p.Variant {
		return false
	}
	// Without a version it runs on every build, as HostProcess images do.
	return p.Build == "" || have.OSVersion == "" || buildOf(have.OSVersion) == p.Build
}

// buildOf is the third number of Windows' version.
func buildOf(osVersion string) string {
	if v := strings.Split(osVersion, "."); len(v) > 2 {
		return v[2]
	}
	return ""
}

// referenceDigest is the annotation with which an index says that a child is
// about another one.
const referenceDigest = "vnd.docker.reference.digest"

// choose returns what is copied of whole: whole itself without platforms or
// where it is no index; the one child of a single choice (Raw is nil then, and
// the child is its only one); else a new index of the children of these
// platforms and what is about them, each as it was listed. A
// platform of a system that whole has nothing for is passed over, if another one
// is left; one that it lacks of a system that it has is a problem.
func choose(whole Manifest, src Source, platforms []Platform) (Manifest, error) {
	if len(platforms) == 0 || !whole.IsIndex() {
		return whole, nil
	}
	var kept []v1.Descriptor
	digests := map[string]bool{}
	for _, p := range platforms {
		n := len(kept)
		for _, d := range whole.Children {
			if p.Matches(d.Platform) {
				kept = append(kept, d)
				digests[d.Digest.String()] = true
			}
		}
		if len(kept) == n && hasOS(whole, p.OS) {
			return Manifest{}, otherPlatform(p, src, platformsOf(whole))
		}
	}
	if len(kept) == 0 {
		return Manifest{}, otherPlatform(platforms[0], src, platformsOf(whole))
	}
	if len(digests) == 1 {
		return Manifest{Digest: kept[0].Digest, MediaType: kept[0].MediaType, Children: kept[:1]}, nil
	}
	return subset(whole, func(d v1.Descriptor) bool {
		return digests[d.Digest.String()] || digests[d.Annotations[referenceDigest]]
	})
}

// hasOS says whether an index has anything for a system: most images of a
// cluster are for Linux alone, and those of Windows for that alone.
func hasOS(whole Manifest, os string) bool {
	return slices.ContainsFunc(whole.Children, func(d v1.Descriptor) bool { return d.Platform != nil && d.Platform.OS == os })
}

func otherPlatform(p Platform, src Source, have []string) error {
	return &fault.Problem{Class: fault.Input, Field: "--platform", Value: p.String(), Why: "is not one that " + src.String() + " is made for",
		Fix: "it has " + strings.Join(have, ", ")}
}

// madeFor refuses a manifest that is no index and made for none of the platforms.
func madeFor(ctx context.Context, m Manifest, src Source, platforms []Platform) error {
	if len(platforms) == 0 || m.IsIndex() {
		return nil
	}
	have, err := platformOf(ctx, m, src)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(platforms, func(p Platform) bool { return p.Matches(&have) }) {
		return otherPlatform(platforms[0], src, []string{Platform{OS: have.OS, Architecture: have.Architecture, Variant: have.Variant, Build: buildOf(have.OSVersion)}.String()})
	}
	return nil
}

// platformOf is what the config of a manifest says that it is made for.
func platformOf(ctx context.Context, m Manifest, src Source) (v1.Platform, error) {
	rc, err := src.Blob(ctx, m.Blobs[0])
	if err != nil {
		return v1.Platform{}, fmt.Errorf("reading the config of %s: %w", src, err)
	}
	defer rc.Close()
	data, err := io.ReadAll(io.LimitReader(rc, maxManifest))
	if err != nil {
		return v1.Platform{}, fmt.Errorf("reading the config of %s: %w", src, err)
	}
	cfg, err := v1.ParseConfigFile(bytes.NewReader(data))
	if err != nil {
		return v1.Platform{}, fmt.Errorf("reading the config of %s: %w", src, err)
	}
	return v1.Platform{OS: cfg.OS, Architecture: cfg.Architecture, Variant: cfg.Variant, OSVersion: cfg.OSVersion}, nil
}

// subset writes an index with some of the children, all else as it was.
func subset(whole Manifest, keep func(v1.Descriptor) bool) (Manifest, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(whole.Raw, &fields); err != nil {
		return Manifest{}, fmt.Errorf("reading an index: %w", err)
	}
	var entries, kept []json.RawMessage
	if err := json.Unmarshal(fields["manifests"], &entries); err != nil {
		return Manifest{}, fmt.Errorf("reading an index: %w", err)
	}
	for i, d := range whole.Children {
		if i < len(entries) && keep(d) {
			kept = append(kept, entries[i])
		}
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return Manifest{}, fmt.Errorf("writing an index: %w", err)
	}
	fields["manifests"] = data
	raw, err := json.Marshal(fields)
	if err != nil {
		return Manifest{}, fmt.Errorf("writing an index: %w", err)
	}
	return ParseManifest(raw, types.MediaType(whole.MediaType))
}

// platformsOf lists what an index has, for people.
func platformsOf(m Manifest) []string {
	var out []string
	for _, d := range m.Children {
		if d.Platform == nil || d.Platform.OS == "unknown" {
			continue
		}
		s := Platform{OS: d.Platform.OS, Architecture: d.Platform.Architecture, Variant: d.Platform.Variant, Build: buildOf(d.Platform.OSVersion)}.String()
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

package kube

import (
	"regexp"
	"time"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
)

// Description is what a request was resolved to, for people and for programs
// that decide by it.
type Description struct {
	Asked     string            `json:"asked"`
	Source    string            `json:"source"` // as in Ref
	Version   string            `json:"version"`
	Commit    string            `json:"commit,omitempty"` // of a CI build its first digits only
	BuildDate string            `json:"buildDate,omitempty"`
	TreeState string            `json:"treeState,omitempty"`
	Toolchain string            `json:"toolchain,omitempty"`
	Marker    *Marker           `json:"marker,omitempty"`
	Files     []Origin          `json:"files"` // sorted by name
	Inputs    map[string]string `json:"inputs"`
}

// Marker is a name that stands for another version from time to time.
type Marker struct {
	URL        string     `json:"url"`
	Version    string     `json:"version"`              // what it says; Description.Version is older where that build is not complete
	Modified   *time.Time `json:"modified,omitempty"`   // when it was last moved, where the server tells
	AgeSeconds int64      `json:"ageSeconds,omitempty"` // since then
}

// Origin is where one file would come from.
type Origin struct {
	File   string `json:"file"`
	From   string `json:"from"`
	Digest string `json:"digest,omitempty"` // "sha256:…"; empty for what is yet to be compiled or unpacked
}

// origins is what a Source knows of where files come from.
type origins interface {
	origins(ref Ref) []Origin
}

// Describe says what text was resolved to by src, which must have been resolved
// in this process for a marker to be described.
func Describe(text string, src Source, ref Ref) Description {
	d := Description{Asked: text, Source: ref.Source, Version: ref.Version, Commit: ref.Commit, BuildDate: ref.BuildDate, TreeState: ref.TreeState,
		Toolchain: ref.Toolchain, Inputs: ref.Inputs}
	if m := regexp.MustCompile(`^\+([0-9a-f]{7,40})$`).FindStringSubmatch(semver.Build(ref.Version)); m != nil && d.Commit == "" {
		d.Commit = m[1]
	}
	if o, ok := src.(origins); ok {
		d.Files = o.origins(ref)
	}
	if b, ok := src.(*bucketSource); ok && b.seen != nil {
		d.Marker = &Marker{URL: b.seen.url, Version: b.seen.version}
		if at := b.seen.modified.UTC(); !b.seen.modified.IsZero() {
			d.Marker.Modified, d.Marker.AgeSeconds = &at, int64(time.Since(at).Seconds())
		}
	}
	return d
}

// compiled says of programs that they will be compiled.
func compiled(targets []target, ref Ref, from string) []Origin {
	var out []Origin
	for _, t := range targets {
		out = append(out, Origin{File: t.file(), From: "compiled from " + from + " with " + ref.Toolchain})
	}
	return out
}

func (s *moduleSource) origins(ref Ref) []Origin {
	return compiled(s.opts.targets(s.programs), ref, mainModule+"@"+ref.Version)
}

func (s *gitSource) origins(ref Ref) []Origin {
	return compiled(s.opts.targets(Programs()), ref, gosource.WithoutPassword(s.remote)+" at "+ref.Commit)
}

func (c *checkoutSource) origins(ref Ref) []Origin {
	return compiled(c.opts.targets(Programs()), ref, c.path)
}

func (d *dirSource) origins(ref Ref) []Origin { return filesIn(d.path+"/", ref) }

func (s *urlSource) origins(ref Ref) []Origin { return filesIn(s.text+", ", ref) }

// filesIn says of programs that they are taken from a place, or from the base.
func filesIn(place string, ref Ref) []Origin {
	var out []Origin
	for _, p := range Programs() {
		o := Origin{File: p + ".exe", From: place + p + ".exe", Digest: ref.Inputs[p+".exe"]}
		if o.Digest == "" && ref.Base != nil {
			o = compiled([]target{{program: p, goos: windows}}, *ref.Base, mainModule+"@"+ref.Base.Version)[0]
		}
		out = append(out, o)
	}
	return out
}

func (s *bucketSource) origins(ref Ref) []Origin {
	var out []Origin
	for _, t := range s.opts.targets(Programs()) {
		from, archive := s.origin(ref, t)
		o := Origin{File: t.file(), From: from, Digest: ref.Inputs[t.file()]}
		if archive {
			o.From += ", " + s.opts.memberOf(t)
		} else if o.Digest == "" {
			o.Digest = ref.Inputs[inputName(t.file(), "sha512")]
		}
		out = append(out, o)
	}
	return out
}

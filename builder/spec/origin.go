package spec

import (
	"slices"

	"github.com/wbox-dev/wbox/builder/fault"
)

// origins says where values came from: a field's key, or for one element of a
// list "KEY=VALUE" -> a place such as "wbox.yaml:7:6". Flags are not in it.
type origins map[string]string

// Layer is a part of the fields, set in one place: by flags, in a box file or in
// a preset.
type Layer struct {
	values  Spec
	origins origins
	given   []string // keys of the fields that are set
}

// FromFlags returns the layer of the flags: those fields of s for whose flag
// (without the dashes, such as "k8s-base") given is true.
func FromFlags(s *Spec, given func(flag string) bool) Layer {
	l := Layer{values: *s}
	for _, f := range Fields() {
		if given(f.Flag[len("--"):]) {
			l.given = append(l.given, f.Key)
		}
	}
	return l
}

// Merge lays layers over one another, the topmost first, and returns what is
// seen from above. Lists are not joined: the topmost wins.
func Merge(layers ...Layer) *Spec {
	s := &Spec{origins: origins{}}
	for _, l := range slices.Backward(layers) {
		for _, f := range Fields() {
			if slices.Contains(l.given, f.Key) {
				f.of(s).Set(f.of(&l.values))
				s.origins.copy(f.Key, l.origins)
			}
		}
	}
	return s
}

// copy takes over where a field came from.
func (o origins) copy(key string, from origins) {
	for k := range o {
		if keyOf(k) == key {
			delete(o, k)
		}
	}
	for k, v := range from {
		if keyOf(k) == key {
			o[k] = v
		}
	}
}

// Origin says where the field of a flag such as "--cni" came from: a place
// such as "wbox.yaml:7:6" or "preset ws2022-calico", or "" for a flag or a
// default.
func (s *Spec) Origin(flag string) string {
	f, ok := byFlag(flag)
	if !ok {
		return ""
	}
	return s.origins[f.Key]
}

// Locate returns err with every Problem about a field that came from a box file
// or a preset naming that place instead of the flag. Problems that are wrapped
// in another text stay as they are.
func (s *Spec) Locate(err error) error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
	case *fault.Problem:
		return s.locate(e)
	case *fault.Preflight:
		all := make([]error, len(e.Errs))
		for i := range e.Errs {
			all[i] = s.Locate(e.Errs[i])
		}
		return &fault.Preflight{Errs: all}
	}
	return err
}

func (s *Spec) locate(p *fault.Problem) *fault.Problem {
	f, ok := byFlag(p.Field)
	if !ok {
		return p
	}
	place := s.origins[f.Key+"="+p.Value]
	if place == "" {
		place = s.origins[f.Key]
	}
	if place == "" {
		return p
	}
	located := *p
	located.Field = place + ": " + f.Key
	return &located
}

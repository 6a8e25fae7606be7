package builder

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stages/libvirt"
	"github.com/wbox-dev/wbox/builder/stages/proof"
)

// lineage knows which results of a store were made of which.
type lineage struct {
	entries  []cas.Entry
	byKey    map[string]*cas.Entry
	inputs   map[string]map[string]string // key -> the inputs in its key.json
	byDigest map[string][]string          // digest of an output -> the keys that have it
}

func newLineage(entries []cas.Entry) *lineage {
	l := &lineage{entries: entries, byKey: map[string]*cas.Entry{}, inputs: map[string]map[string]string{}, byDigest: map[string][]string{}}
	for i := range entries {
		e := &entries[i]
		l.byKey[e.Key] = e
		var doc struct {
			Inputs map[string]string `json:"inputs"`
		}
		if json.Unmarshal(e.Doc, &doc) == nil {
			l.inputs[e.Key] = doc.Inputs
		}
		for _, o := range e.Outputs {
			if o.Digest != "" {
				l.byDigest[o.Digest] = append(l.byDigest[o.Digest], e.Key)
			}
		}
	}
	return l
}

// walk calls visit for a result and for all that it was made of, once each.
func (l *lineage) walk(key string, visit func(key string)) {
	seen := map[string]bool{}
	var step func(string)
	step = func(key string) {
		if seen[key] || l.byKey[key] == nil {
			return
		}
		seen[key] = true
		visit(key)
		for _, in := range l.inputs[key] {
			if parent, ok := strings.CutPrefix(in, "key:"); ok {
				step(parent)
			}
			for _, maker := range l.byDigest[in] {
				step(maker)
			}
		}
	}
	step(key)
}

// media returns the digests of the installation media that a result is made
// of: none for what has nothing to do with Windows.
func (l *lineage) media(key string) []string {
	var out []string
	l.walk(key, func(k string) {
		if d := l.inputs[k]["iso"]; d != "" {
			out = append(out, d)
		}
	})
	return out
}

// madeBox is what a box in the store tells about itself.
type madeBox struct {
	Kubernetes string `json:"kubernetes"`
	CNI        string `json:"cni"`
	StandIn    string `json:"stand-in"`
}

func (l *lineage) boxes() map[string]madeBox {
	out := map[string]madeBox{}
	for _, e := range l.entries {
		if e.Stage != libvirt.Name {
			continue
		}
		var doc struct {
			Fingerprint struct {
				Params struct{ Info madeBox } `json:"params"`
			} `json:"fingerprint"`
		}
		if json.Unmarshal(e.Doc, &doc) == nil {
			out[e.Key] = doc.Fingerprint.Params.Info
		}
	}
	return out
}

func (b madeBox) String() string {
	s := strings.Join(strings.Fields(b.Kubernetes+" "+b.CNI), " ")
	if b.StandIn != "" {
		s += " (stand-in)"
	}
	return s
}

// uses says which boxes of the store were made of each result; a proof is of
// the boxes that its disk is in.
func (l *lineage) uses() map[string][]string {
	out := map[string][]string{}
	for key, b := range l.boxes() {
		l.walk(key, func(k string) { out[k] = append(out[k], b.String()) })
	}
	for k, names := range out {
		slices.Sort(names)
		out[k] = slices.Compact(names)
	}
	for _, e := range l.entries {
		disk, ok := strings.CutPrefix(l.inputs[e.Key]["disk"], "key:")
		if e.Stage == proof.Name && ok {
			out[e.Key] = out[disk]
		}
	}
	return out
}

// standIns returns the digests of the media that boxes of the store say to be
// stand-ins.
func (l *lineage) standIns() map[string]bool {
	out := map[string]bool{}
	for key, b := range l.boxes() {
		if b.StandIn == "" {
			continue
		}
		for _, d := range l.media(key) {
			out[d] = true
		}
	}
	return out
}

// stageOrder returns the keys of a map by stage in the order of the pipeline;
// names that it does not know come last.
func stageOrder[V any](byStage map[string]V) []string {
	var out []string
	for _, s := range pipeline(&Resolved{Spec: &spec.Spec{}}, bake.Host{}) {
		if _, ok := byStage[s.Name()]; ok {
			out = append(out, s.Name())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byStage)) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

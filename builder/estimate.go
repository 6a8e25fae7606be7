package builder

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/stages/componentbits"
	"github.com/wbox-dev/wbox/builder/stages/features"
	"github.com/wbox-dev/wbox/builder/stages/kubebits"
	"github.com/wbox-dev/wbox/builder/stages/libvirt"
	"github.com/wbox-dev/wbox/builder/stages/payload"
	"github.com/wbox-dev/wbox/builder/stages/proof"
	"github.com/wbox-dev/wbox/builder/stages/updates"
	"github.com/wbox-dev/wbox/builder/stages/windows"
)

// Cost is what a stage, or a whole build, is expected to take.
type Cost struct {
	Download int64 `json:"downloadBytes"`
	DiskPeak int64 `json:"diskPeakBytes"` // while it runs, what stays included
	DiskKept int64 `json:"diskKeptBytes"` // in the store afterwards
	// DiskMeasured says whether the sizes are those of results that were made
	// here; they are guesses otherwise.
	DiskMeasured bool `json:"diskMeasured"`
	// Seconds is the median of the results that were made here, 0 where there
	// are none. A build's is that of its longest way, for the stages that were
	// measured.
	Seconds float64 `json:"seconds"`
	// TimeMeasured says whether Seconds covers all that would run.
	TimeMeasured bool `json:"timeMeasured"`
	// Samples is how many results Seconds is the median of; 0 for a build.
	Samples int `json:"samples,omitempty"`
}

// download adds a file that is downloaded and kept.
func (c *Cost) download(size int64) {
	c.Download += size
	c.DiskPeak += size
	c.DiskKept += size
}

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// guess is what a stage takes where it was not made here before.
type guess struct{ kept, extra int64 }

// guesses are sizes for Windows Server and for a stand-in: generous ones, since
// a build that runs out of disk has wasted an hour. Disks of VM layers are
// overlays. A Core installation takes some 8 GiB and its box 4 to 6, one with a
// desktop half as much again.
func guesses(stage string, standIn, desktop bool) guess {
	if standIn {
		switch stage {
		case windows.Name:
			return guess{256 * mib, 8 * mib}
		case kubebits.Name, payload.Name, componentbits.CNI, componentbits.Runtime:
			return guess{256 * mib, 0}
		case libvirt.Name:
			return guess{384 * mib, 0}
		case proof.Name:
			return guess{mib, 64 * mib}
		}
		return guess{32 * mib, 8 * mib}
	}
	var g guess
	switch stage {
	case windows.Name:
		g = guess{9 * gib, 64 * mib}
	case updates.Name:
		g = guess{8 * gib, 2 * gib}
	case kubebits.Name, payload.Name, componentbits.CNI, componentbits.Runtime:
		return guess{256 * mib, 0}
	case libvirt.Name:
		g = guess{6 * gib, 0}
	case proof.Name:
		return guess{mib, 2 * gib}
	case features.Name:
		return guess{gib + gib/2, 256 * mib}
	default:
		return guess{gib / 2, 256 * mib}
	}
	if desktop {
		g.kept += g.kept / 2
	}
	return g
}

// estimator knows what was made here before.
type estimator struct {
	lines   *lineage
	standIn bool
	desktop bool
	source  string          // of Kubernetes, as kube.Ref says it
	known   map[string]bool // media that are stand-ins
}

func newEstimator(r *Resolved, l *lineage) *estimator {
	e := &estimator{lines: l, standIn: r.Media.StandIn != nil, desktop: r.Spec.Edition == "desktop",
		source: r.Ref.Source, known: l.standIns()}
	if e.standIn {
		e.known[r.ISODigest] = true
	}
	return e
}

// like lists the results of a stage that tell something about another one: a
// stand-in's say nothing about Windows, and the other way round.
func (e *estimator) like(stage string) []*cas.Entry {
	var out []*cas.Entry
	for i := range e.lines.entries {
		x := &e.lines.entries[i]
		if x.Stage != stage || x.Damage != "" {
			continue
		}
		other := slices.ContainsFunc(e.lines.media(x.Key), func(d string) bool { return e.known[d] != e.standIn })
		if stage == kubebits.Name && sourceOf(x) != e.source { // compiling and copying take other times
			continue
		}
		if !other {
			out = append(out, x)
		}
	}
	return out
}

// sourceOf is where a result's Kubernetes came from.
func sourceOf(x *cas.Entry) string {
	var doc struct {
		Fingerprint struct {
			Params struct {
				Source string `json:"source"`
			} `json:"params"`
		} `json:"fingerprint"`
	}
	if json.Unmarshal(x.Doc, &doc) != nil {
		return ""
	}
	return doc.Fingerprint.Params.Source
}

// cost estimates one stage that would run. chain is the size of the disks that
// it would start from.
func (e *estimator) cost(stage string, chain int64) Cost {
	g := guesses(stage, e.standIn, e.desktop)
	c := Cost{DiskKept: g.kept}
	var times []time.Duration
	for _, x := range e.like(stage) {
		times = append(times, x.Elapsed)
		if !c.DiskMeasured {
			c.DiskKept, c.DiskMeasured = 0, true
		}
		c.DiskKept = max(c.DiskKept, x.Size)
	}
	if stage == libvirt.Name {
		g.extra = chain // the overlays in one disk, which is then packed
	}
	c.DiskPeak = c.DiskKept + g.extra
	if c.Samples = len(times); c.Samples > 0 {
		slices.Sort(times)
		c.Seconds, c.TimeMeasured = ((times[(len(times)-1)/2] + times[len(times)/2]) / 2).Seconds(), true
	}
	return c
}

// costs estimates every stage of a plan and the whole. Stages that are there
// already cost nothing.
func (e *estimator) costs(planned []engine.Planned) (each []Cost, total Cost) {
	each = make([]Cost, len(planned))
	total = Cost{DiskMeasured: true, TimeMeasured: true}
	var chain int64    // of the disks so far
	var extras []int64 // of the stages that would run, beside what they leave
	var beside int64   // of those that run at the same time, at the end
	clock := newClock()
	for i, p := range planned {
		name := p.Stage.Name()
		runs := p.Status == engine.Miss || p.Status == engine.Always
		if runs {
			c := e.cost(name, chain)
			each[i] = c
			total.DiskKept += c.DiskKept
			total.DiskMeasured = total.DiskMeasured && c.DiskMeasured
			total.TimeMeasured = total.TimeMeasured && c.TimeMeasured
			if name == proof.Name || name == libvirt.Name {
				beside += c.DiskPeak - c.DiskKept
			} else {
				extras = append(extras, c.DiskPeak-c.DiskKept)
			}
			chain += diskOf(name, c.DiskKept)
		} else if x := e.lines.byKey[p.Key]; x != nil {
			chain += diskOf(name, x.Size)
		}
		clock.run(p.Stage, each[i].Seconds)
	}
	total.DiskPeak = total.DiskKept + slices.Max(append(extras, beside))
	total.Seconds = clock.end()
	return each, total
}

// diskOf is what a stage's result adds to the chain of disks.
func diskOf(stage string, size int64) int64 {
	if stage == kubebits.Name || stage == componentbits.CNI || stage == componentbits.Runtime || stage == proof.Name || strings.HasPrefix(stage, libvirt.Name) {
		return 0
	}
	return size
}

package builder

import (
	"context"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/stages/libvirt"
	"github.com/wbox-dev/wbox/builder/stages/windows"
)

// StageExplained is why a stage would run and what that is expected to take.
type StageExplained struct {
	Reasons []string `json:"reasons,omitempty"` // one difference each
	// Nearest is the key of the stored result that the stage was compared
	// with, Made when that one was made.
	Nearest string    `json:"nearest,omitempty"`
	Made    time.Time `json:"made,omitzero"`
	Cost    Cost      `json:"cost"`
}

// Need is room that a build needs in a folder.
type Need struct {
	Flag   string `json:"flag"` // that names the folder
	Folder string `json:"folder"`
	Bytes  int64  `json:"bytes"`
	Free   int64  `json:"freeBytes"` // 0 where unknown
	volume string
}

// MemoryNeed is memory that a build's machines need, one at a time.
type MemoryNeed struct {
	Bytes     int64 `json:"bytes"`          // 0 where no machine would run
	Available int64 `json:"availableBytes"` // 0 where unknown
	Total     int64 `json:"totalBytes"`     // of this machine, 0 where unknown
}

// Explanation is a plan with its reasons and costs.
type Explanation struct {
	Stages []PlanLine `json:"stages"`
	Total  Cost       `json:"total"`
	Disk   []Need     `json:"disk"`
	Memory MemoryNeed `json:"memory"`
}

// Explain says what Build would do, why, and what it is expected to take. It
// changes nothing.
func (b *Builder) Explain(ctx context.Context, r *Resolved) (*Explanation, error) {
	e := &engine.Engine{Store: b.store, Sink: b.opts.Sink}
	planned, err := e.Plan(ctx, pipeline(r, bake.Host{}))
	if err != nil {
		return nil, err
	}
	return b.explain(r, e, planned)
}

func (b *Builder) explain(r *Resolved, e *engine.Engine, planned []engine.Planned) (*Explanation, error) {
	entries, err := b.store.Entries()
	if err != nil {
		return nil, err
	}
	out := &Explanation{Stages: r.planLines(planned)}
	costs, total := newEstimator(r, newLineage(entries)).costs(planned)
	if _, size := r.Pending(); size > 0 { // the medium stays in the store
		for i, p := range planned {
			if p.Stage.Name() == windows.Name {
				costs[i].download(size)
			}
		}
		total.download(size)
	}
	for i, why := range e.Explain(planned, entries) {
		if r.agedOut(planned[i]) {
			why.Reasons = append([]string{r.Aged()}, why.Reasons...)
		}
		out.Stages[i].Explain = &StageExplained{Reasons: why.Reasons, Nearest: why.Nearest, Made: why.Made, Cost: costs[i]}
	}
	out.Total = total
	b.needs(r, planned, costs, out)
	return out, nil
}

// needs works out how much room a build needs where, and measures what is there.
func (b *Builder) needs(r *Resolved, planned []engine.Planned, costs []Cost, out *Explanation) {
	var boxes int64
	for i, p := range planned {
		if p.Stage.Name() == libvirt.Name {
			boxes += costs[i].DiskKept // copied into the output folder
		}
		if costs[i].DiskPeak > 0 && needsVM(p.Stage) {
			out.Memory.Bytes = int64(r.memoryMiB) * mib
		}
	}
	out.Disk = []Need{{Flag: "--store", Folder: b.store.Root(), Bytes: out.Total.DiskPeak}, {Flag: "-o", Folder: r.Spec.Output, Bytes: boxes}}
	for i := range out.Disk {
		n := &out.Disk[i]
		if free, volume, err := b.opts.Capacity.disk(n.Folder); err == nil { // else unknown
			n.Free, n.volume = free, volume
		}
	}
	if available, total, err := b.opts.Capacity.memory(); err == nil {
		out.Memory.Available, out.Memory.Total = available, total
	}
}
